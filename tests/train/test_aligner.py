import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

from bridgehead.errors import ArgumentError, ConfigError, FormatVersionError, NotFittedError, ShapeError
from bridgehead.evaluate import retrieval_report
from bridgehead.train import Aligner

SMALL = {"hidden": (16,)}
# The towers and the course of the seed's own study, on its data.
STUDY = Aligner(16, epochs=60, settings={"hidden": (64,), "batch_size": 120, "learning_rate": 4e-3, "dropout": 0.0})


def recall_at_1(aligner, views):
    report = retrieval_report(aligner.transform_a(views[0]), aligner.transform_b(views[1]), ks=(1,), n_resamples=0)
    return report.a_to_b.recall[1], report.b_to_a.recall[1]


@pytest.mark.parametrize("aligner", [STUDY, Aligner()], ids=["study", "defaults"])
def test_it_learns_two_views_of_one_event_on_held_out_pairs(views, aligner):
    aligner = clone(aligner).fit(*views.fit, valid=(*views.valid, None))
    assert min(recall_at_1(aligner, views.held_out)) > 0.9


def test_with_shuffled_pairs_held_out_retrieval_stays_at_chance(views):
    rng = np.random.default_rng(0)
    a, b = views.fit
    aligner = clone(STUDY).fit(a, b[rng.permutation(len(b))], valid=(*views.valid, None))
    # Chance is 1/300; 5/300 has a probability under 0.4 % with 300 random ranks.
    assert max(recall_at_1(aligner, views.held_out)) <= 5 / 300


def test_links_that_say_the_order_undo_a_permutation_of_rows(views):
    order = np.random.default_rng(1).permutation(720)
    a, b = views.fit
    links = torch.from_numpy(np.stack([order, np.arange(720)], axis=1))
    aligner = clone(STUDY).set_params(epochs=25).fit(a, b[order], links=links)
    assert min(recall_at_1(aligner, views.held_out)) > 0.8


def test_rows_are_unit_and_float32_for_arrays_tensors_lists_and_csr(few):
    a, b = few.fit
    aligner = Aligner(8, 1, settings=SMALL).fit(a, b)
    z = aligner.transform_a(a)
    assert z.dtype == np.float32 and z.shape == (60, 8)
    assert np.linalg.norm(z, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.array_equal(aligner.transform_a(torch.from_numpy(a)), z)
    assert np.array_equal(aligner.transform_a(a.tolist()), z)
    csr = sparse.csr_array(np.maximum(a, 0))
    assert Aligner(8, 1, settings=SMALL).fit(csr, b).transform_a(csr).shape == (60, 8)


def test_the_score_is_the_mean_mrr_of_both_directions(few):
    aligner = Aligner(8, 1, settings=SMALL).fit(*few.fit)
    report = retrieval_report(
        *[f(x) for f, x in zip((aligner.transform_a, aligner.transform_b), few.valid, strict=True)]
    )
    assert aligner.score(*few.valid) == pytest.approx((report.a_to_b.mrr + report.b_to_a.mrr) / 2)


def test_it_has_the_habits_of_a_scikit_learn_estimator():
    aligner = Aligner(embed_dim=12, settings={"dropout": 0.3})
    assert aligner.get_params() == {"embed_dim": 12, "epochs": 30, "seed": 0, "settings": {"dropout": 0.3}}
    assert aligner.set_params(epochs=2, seed=3) is aligner
    assert clone(aligner).get_params() == aligner.get_params()
    assert repr(Aligner()) == "Aligner(embed_dim=256, epochs=30, seed=0, settings=None)"
    with pytest.raises(ArgumentError, match="no parameter 'depth'; expected one of embed_dim, epochs, seed, settings"):
        aligner.set_params(depth=3)


def test_settings_are_checked_when_it_is_fitted(few):
    with pytest.raises(ConfigError, match="depth: unknown key"):
        Aligner(settings={"depth": 3}).fit(*few.fit)


def test_an_argument_that_stands_in_the_settings_too_must_be_the_same(few):
    with pytest.raises(ConfigError, match="epochs = 2 stands in settings, and epochs = 30 is an argument"):
        Aligner(settings={"epochs": 2}).fit(*few.fit)
    assert len(Aligner(8, 2, settings={**SMALL, "epochs": 2}).fit(*few.fit).history_) == 2


def test_before_fit_it_says_so_in_the_way_scikit_learn_does(few):
    for use in (Aligner().transform_a, Aligner().transform_b):
        with pytest.raises(NotFittedError, match="call fit"):
            use(few.fit[0])
    assert issubclass(NotFittedError, ValueError) and issubclass(NotFittedError, AttributeError)


def test_rows_of_another_width_than_in_fit_are_refused(few):
    aligner = Aligner(8, 1, settings=SMALL).fit(*few.fit)
    with pytest.raises(ShapeError, match=r"expected \(n, 14\)"):
        aligner.transform_a(few.fit[1])


def test_a_saved_aligner_loads_with_the_same_rows_parameters_and_history(few, tmp_path):
    csr = sparse.csr_matrix(np.maximum(few.fit[0], 0))
    aligner = Aligner(8, 2, settings={"hidden": (16,)}).fit(csr, few.fit[1])
    aligner.save(tmp_path / "space")
    again = Aligner.load(tmp_path / "space")
    assert again.get_params()["embed_dim"] == 8
    assert again.history_ == aligner.history_ and again.best_epoch_ == 2
    assert np.array_equal(again.transform_a(csr), aligner.transform_a(csr))
    (tmp_path / "space" / "aligner.json").write_text('{"format": "bridgehead-aligner", "version": 99}')
    with pytest.raises(FormatVersionError, match="version 99"):
        Aligner.load(tmp_path / "space")
