import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

from bridgehead.errors import ArgumentError
from bridgehead.files import read_json
from bridgehead.runs import two_view_study
from bridgehead.runs.study.main_table import MainTable, aligned, main_table, signed, trained
from bridgehead.runs.study.one_sided import OneSided
from bridgehead.runs.study.published import PUBLISHED, TOLERANCE
from bridgehead.runs.study.spread import METRICS, Measured, Spread, measure
from bridgehead.runs.two_view import (
    SEEDS,
    epoch_orders,
    first_model,
    seen_again,
    study_members,
    two_views,
    wrong_pairs,
)
from bridgehead.train.ensemble.members import Member

DATA = two_views()


@pytest.fixture(scope="module")
def short():
    """The main table after 10 of the 160 epochs."""
    return main_table(DATA, epochs=10)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The whole study with its exercises, and the folder that it wrote."""
    folder = tmp_path_factory.mktemp("study")
    said = []
    return two_view_study(folder, everything=True, progress=lambda *line: said.append(line)), folder, said


def measured(mean, sd=0.0):
    spread = Spread((mean - sd, mean, mean + sd))
    return Measured(dict.fromkeys(METRICS, spread), dict.fromkeys(METRICS, 1 / 300))


def planted_table(off=0.0):
    """A table whose means are the published ones, all of them moved by `off`."""
    found = {}
    for split in ("validation", "held_out"):
        found[split] = {
            condition: Measured(
                {m: Spread((PUBLISHED[f"{split}.{condition}.{m}"][0] + off * sign,)) for m in METRICS},
                dict.fromkeys(METRICS, 0.01),
            )
            for condition, sign in (("paired", 1), ("shuffled", -1))
        }
    return MainTable({}, found)


def test_a_spread_has_mean_and_sample_sd_and_differences_are_within_seeds():
    first, second = Spread((0.1, 0.4, 0.4)), Spread((0.0, 0.3, 0.3))
    assert first.mean == pytest.approx(0.3)
    assert first.sd == pytest.approx((0.03) ** 0.5)
    paired = first.minus(second)
    assert (paired.mean, paired.sd) == (pytest.approx(0.1), pytest.approx(0, abs=1e-12))
    assert str(first) == "0.3000 (0.1732)"


def test_the_interval_over_seeds_is_that_of_students_t():
    values = (0.97, 0.98, 0.96, 0.97, 0.99)
    expected = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    np.testing.assert_allclose(Spread(values).interval(), expected, rtol=1e-12)
    assert Spread((0.5,)).interval() == (-np.inf, np.inf)
    assert Spread((0.5,)).sd == 0


@pytest.mark.parametrize("values", [(), (float("nan"),), (0.1, float("inf"))])
def test_a_spread_without_a_finite_value_for_each_seed_is_refused(values):
    with pytest.raises(ArgumentError, match="finite number for at least one seed"):
        Spread(values)


def test_differences_of_other_numbers_of_seeds_are_refused():
    with pytest.raises(ArgumentError, match="2 and 1 seeds"):
        Spread((0.1, 0.2)).minus(Spread((0.1,)))


def test_recalls_are_those_of_a_topk_over_all_candidates_and_chance_is_k_over_n():
    models = [first_model(seed) for seed in SEEDS[:2]]
    found = measure(models, DATA.valid.a, DATA.valid.b)
    for number, model in enumerate(models):
        scores = (
            torch.tensor(model.project_a(DATA.valid.a)).double()
            @ torch.tensor(model.project_b(DATA.valid.b)).double().T
        )
        for k in (1, 5):
            for side, matrix in (("a_to_b", scores), ("b_to_a", scores.T)):
                first = matrix.topk(k, dim=1).indices
                expected = (first == torch.arange(180)[:, None]).any(dim=1).double().mean()
                assert found.values[f"{side}.recall@{k}"].values[number] == pytest.approx(float(expected), abs=1e-12)
    assert found.chance == {metric: pytest.approx(int(metric[-1]) / 180) for metric in METRICS}


def test_the_published_table_has_18_figures_with_mean_and_sd():
    assert len(PUBLISHED) == 18
    assert PUBLISHED["held_out.paired.a_to_b.recall@1"] == (0.9747, 0.0038)
    assert PUBLISHED["held_out.paired_minus_shuffled.b_to_a.recall@1"] == (0.9633, 0.0105)
    assert PUBLISHED["validation.shuffled.b_to_a.recall@5"] == (0.0222, 0.0152)


def test_every_row_says_whether_its_mean_is_within_the_tolerance():
    # A difference of both conditions is off by twice as much: that and no other row is beyond.
    table = planted_table(off=0.004)
    assert [row.condition for row in table.rows if not row.within] == ["paired_minus_shuffled"] * 2
    assert not table.within
    assert table.lines()[-1].startswith("16 of 18 means are within 0.005")
    assert sum(" NO " in line for line in table.lines()) == 2
    assert planted_table(off=0.0).within


def test_a_mean_that_is_the_whole_tolerance_off_is_still_within():
    rows = [row for row in planted_table(off=TOLERANCE).rows if row.condition != "paired_minus_shuffled"]
    assert all(row.within for row in rows)
    assert not any(row.within for row in planted_table(off=0.0051).rows)


def test_measured_and_published_have_the_same_keys_of_split_condition_and_metric():
    record = planted_table(off=0.001).to_dict()
    assert record["measured"].keys() == record["published"].keys() == record["difference"].keys()
    key = "held_out.paired.a_to_b.recall@1"
    assert record["measured"][key] == {"mean": pytest.approx(0.9757), "sd": 0.0}
    assert record["published"][key] == {"mean": 0.9747, "sd": 0.0038}
    assert record["difference"][key] == pytest.approx(0.001)


def test_signs_are_shown_but_not_that_of_nothing():
    assert [signed(value) for value in (0.00072, -0.00072, -0.00001, 0.0)] == ["+0.0007", "-0.0007", "0.0000", "0.0000"]
    assert aligned([("a", "bb"), ("ccc", "d")]) == ["a    bb", "ccc  d"]


def test_the_difference_is_paired_by_seed(short):
    row = next(row for row in short.rows if row.key == "held_out.paired_minus_shuffled.a_to_b.recall@1")
    paired, shuffled = (short.found["held_out"][c].values["a_to_b.recall@1"].values for c in ("paired", "shuffled"))
    assert row.measured.values == pytest.approx([x - y for x, y in zip(paired, shuffled, strict=True)])
    assert row.chance is None


def test_ten_epochs_teach_the_true_pairs_and_nothing_from_wrong_ones_and_are_not_the_published_table(short):
    found = short.found["held_out"]
    assert min(found["paired"].values["a_to_b.recall@1"].values) > 0.2
    assert max(found["shuffled"].values["a_to_b.recall@1"].values) < 0.02
    assert not short.within


def test_the_table_leaves_torchs_generator_and_threads_as_they_were():
    before = torch.get_num_threads()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    trained(DATA, [Member(0, start=first_model(6050))], epochs=5)
    assert torch.equal(torch.rand(1), expected)
    assert torch.get_num_threads() == before


def plain_rows(seed, partners, direction, epochs):
    """Train one model of the study in an ordinary loop of PyTorch; return its held-out rows of both sides."""
    drawn = first_model(seed)
    towers = nn.ModuleList([nn.Sequential(h.first, nn.ReLU(), h.rest[0]) for h in (drawn.head_a, drawn.head_b)])
    optimiser = torch.optim.AdamW(towers.parameters(), lr=2e-3, weight_decay=1e-3)
    x_a, x_b = torch.from_numpy(DATA.fit.a), torch.from_numpy(DATA.fit.b)
    for order in torch.from_numpy(epoch_orders(seed, epochs)):
        for batch in order.split(120):
            z_a = F.normalize(towers[0](x_a[batch]), dim=-1)
            z_b = F.normalize(towers[1](x_b[partners[batch]]), dim=-1)
            logits = z_a @ z_b.T / 0.08
            labels = torch.arange(len(batch))
            forth, back = F.cross_entropy(logits, labels), F.cross_entropy(logits.T, labels)
            optimiser.zero_grad()
            (forth if direction == "a_to_b" else (forth + back) / 2).backward()
            optimiser.step()
    with torch.no_grad():
        held = (torch.from_numpy(DATA.held_out.a), torch.from_numpy(DATA.held_out.b))
        return [F.normalize(tower(x), dim=-1).numpy() for tower, x in zip(towers, held, strict=True)]


@pytest.mark.parametrize("direction", ["both", "a_to_b"])
def test_a_member_ends_as_an_ordinary_loop_over_the_same_draws_does(direction):
    # Five epochs, so that the only validation is after the last one.
    true, wrong = torch.arange(720), torch.tensor(wrong_pairs()[:, 1])
    if direction == "both":
        models, partners = trained(DATA, study_members(5)[:2], epochs=5), (true, wrong)
    else:
        member = Member(6050, direction="a_to_b", start=first_model(6050), orders=list(epoch_orders(6050, 5)))
        models, partners = trained(DATA, [member], epochs=5), (true,)
    for model, own in zip(models, partners, strict=True):
        z_a, z_b = plain_rows(6050, own, direction, 5)
        np.testing.assert_allclose(model.project_a(DATA.held_out.a), z_a, atol=1e-4)
        np.testing.assert_allclose(model.project_b(DATA.held_out.b), z_b, atol=1e-4)


def test_an_event_seen_again_has_other_noise_of_the_same_size():
    again = seen_again(np.arange(720, 900), seed=1)
    assert again.dtype == np.float32
    assert again.shape == DATA.valid.a.shape
    np.testing.assert_array_equal(again, seen_again(np.arange(720, 900), seed=1))
    # Two draws of 0.045 differ by the root of two as much, in units of each column's deviation over the fit rows.
    generator = torch.Generator().manual_seed(1_206_050)
    latent, drawn = torch.randn(1200, 5, generator=generator), torch.randn(5, 14, generator=generator)
    clean = torch.tanh(latent @ drawn / 5**0.5)[:720].double().numpy()
    expected = 0.045 * 2**0.5 / np.sqrt(clean.var(axis=0) + 0.045**2)
    np.testing.assert_allclose((again - DATA.valid.a).std(axis=0), expected, rtol=0.2)
    assert np.abs(again - seen_again(np.arange(720, 900), seed=2)).max() > 0.05


def test_the_one_sided_conclusion_follows_from_the_interval_of_the_contrast():
    def found(forth, back):
        values = {"a_to_b.recall@1": Spread(forth), "b_to_a.recall@1": Spread(back)}
        return {s: Measured(dict.fromkeys(METRICS, Spread(forth)) | values, {}) for s in ("validation", "held_out")}

    symmetric = found((0.9, 0.9, 0.9), (0.9, 0.9, 0.9))
    apart = OneSided(found((0.9, 0.91, 0.9), (0.8, 0.8, 0.81)), symmetric)
    assert "image to text, the direction trained, fares better" in apart.conclusion
    other = OneSided(found((0.8, 0.8, 0.81), (0.9, 0.91, 0.9)), symmetric)
    assert "text to image, the one not trained, fares better" in other.conclusion
    alike = OneSided(found((0.9, 0.8, 0.85), (0.8, 0.9, 0.85)), symmetric)
    assert "do not tell them apart" in alike.conclusion
    assert apart.contrast.mean == pytest.approx(0.1)


@pytest.mark.slow
def test_all_means_of_the_study_are_within_the_tolerance_of_the_published_ones(whole):
    record, _, _ = whole
    assert record["all_within"]
    assert max(map(abs, record["difference"].values())) <= TOLERANCE
    assert record["measured"]["held_out.paired.a_to_b.recall@1"]["mean"] == pytest.approx(0.9747, abs=TOLERANCE)
    assert record["chance"]["held_out.a_to_b.recall@5"] == pytest.approx(5 / 300)
    assert record["weights"] == 2_392


@pytest.mark.slow
def test_the_source_tag_is_found_to_be_used_and_in_the_control_it_is_not(whole):
    tag = whole[0]["source_tag"]
    assert tag["uses_the_tag"]
    assert tag["measured"]["validation.tagged_drop.a_to_b.recall@1"]["mean"] > 0.2
    assert abs(tag["measured"]["validation.control_drop.a_to_b.recall@1"]["mean"]) < 0.02
    assert tag["measured"]["validation.tagged_ordinary.a_to_b.recall@1"]["mean"] > 0.97
    assert tag["wrong_answers_of_the_same_source"]["mean"] > 2 * tag["candidates_of_the_same_source"]


@pytest.mark.slow
def test_duplicated_texts_cost_the_diagonal_half_of_the_queries_concerned_and_the_group_aware_figure_nothing(whole):
    found = whole[0]["duplicated_texts"]
    for side in ("a_to_b", "b_to_a"):
        diagonal, grouped = (
            found["measured"][f"validation.same_event.{truth}.{side}.recall@1"]["mean"]
            for truth in ("diagonal", "group_aware")
        )
        assert grouped > 0.97
        # 72 of 180 queries are concerned, and of each the diagonal accepts one of two equal answers.
        assert grouped - diagonal == pytest.approx(36 / 180, abs=0.01)


@pytest.mark.slow
def test_the_record_is_json_is_stored_and_has_both_one_sided_directions(whole):
    record, folder, said = whole
    stored = read_json(folder / "two_views.json", "two-view study")
    shown = {key: value for key, value in record.items() if key not in ("lines", "page")}
    assert json.loads(json.dumps(shown, allow_nan=False)) == stored
    one_sided = stored["one_sided"]["measured"]
    assert {f"held_out.one_sided.{metric}" for metric in METRICS} <= one_sided.keys()
    assert np.shape(stored["scores"]["paired"]) == (40, 40)
    assert np.shape(stored["views"]["trained"]["text"]) == (20, 2)
    assert {line[0] for line in said} >= {"main table", "one-sided", "source tag", "page"}


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_shows_every_part(whole):
    record, folder, _ = whole
    text = (folder / "two_views.html").read_text(encoding="utf-8")
    assert record["page"] == str(folder / "two_views.html")
    assert text.count("<svg") == 5
    assert "<script" not in text
    for part in ("One-sided training", "Duplicated texts", "A planted source tag", "evaluation contract"):
        assert part in text
    links = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, given: links.extend(v for k, v in given if k in ("src", "href", "xlink:href"))
    parser.feed(text)
    assert all(link.startswith(("#", "data:")) for link in links)


def test_without_a_drop_no_shortcut_is_seen_and_with_one_it_is():
    from bridgehead.runs.study.source_tag import TESTS, SourceTag

    flat = dict.fromkeys(TESTS, measured(0.95, 0.01))
    clean = SourceTag(flat, flat, measured(0.95), None, 0.1)
    assert not clean.uses_the_tag
    assert clean.diagnosis.startswith("No shortcut is seen")
    planted = replace(clean, tagged={**flat, "randomised": measured(0.6, 0.01)}, same_source=Spread((0.3, 0.2)))
    assert planted.uses_the_tag
    assert planted.diagnosis.startswith("The models use the shortcut")
    assert "25%" in planted.diagnosis
    # A drop within the spread of the seeds, or of under four queries, is none.
    assert not replace(clean, tagged={**flat, "randomised": measured(0.94, 0.0)}).uses_the_tag
    loose = Measured(dict.fromkeys(METRICS, Spread((0.5, 1.0, 0.9))), {})
    assert not replace(clean, tagged={**flat, "randomised": loose}).uses_the_tag


def test_a_file_in_the_place_of_the_folder_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ArgumentError, match="taken is a file; expected a folder"):
        two_view_study(tmp_path / "taken")
