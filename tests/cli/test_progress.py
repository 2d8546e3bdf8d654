import io

from bridgehead.cli.progress import StageProgress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_stage_is_a_line_at_its_begin_and_one_at_its_end_with_seconds():
    out, clock = io.StringIO(), Clock()
    progress = StageProgress(out, clock)
    progress("encode", "molecules", 0, 100)
    for done in range(1, 101):
        progress("encode", f"molecules {done}", done, 100)
    clock.now = 2.25
    progress("train", "80 links", None, None)
    progress("train", "note: one pair", None, None)
    progress("refit", "begins", None, None)
    progress("refit", "done", None, None)
    progress.close()
    progress.close()
    assert out.getvalue().splitlines() == [
        "encode: molecules", "encode: done in 2.2 s",
        "train: 80 links", "train: note: one pair", "train: done in 0.0 s",
        "refit: begins", "refit: done in 0.0 s",
    ]  # fmt: skip


def test_what_another_stage_says_inside_one_is_part_of_it():
    out, clock = io.StringIO(), Clock()
    progress = StageProgress(out, clock)
    progress("refit", "begins", None, None)
    progress("encode", "text", 1, 2)
    progress("encode", "a note", None, None)
    clock.now = 1.5
    progress("refit", "done", None, None)
    progress("index", "begins", None, None)
    progress.close(finished=False)
    assert out.getvalue().splitlines() == [
        "refit: begins", "encode: a note", "refit: done in 1.5 s", "index: begins", "index: stopped after 0.0 s",
    ]  # fmt: skip


def test_a_long_stage_is_heard_of_every_half_minute():
    out, clock = io.StringIO(), Clock()
    progress = StageProgress(out, clock)
    for second in range(100):
        clock.now = float(second)
        progress("train", "loss 1.0", second, 2000)
    assert out.getvalue().splitlines() == ["train: loss 1.0", *(f"train: loss 1.0, {s} of 2,000" for s in (30, 60, 90))]


def test_a_count_without_a_total_is_shown_as_it_is():
    out, clock = io.StringIO(), Clock()
    progress = StageProgress(out, clock)
    progress("check", "rows", 0, None)
    clock.now = 31.0
    progress("check", "rows", 12_000, None)
    assert out.getvalue() == "check: rows\ncheck: rows, 12,000\n"


def test_on_a_terminal_there_is_a_bar_that_goes_away(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    progress = StageProgress(out)
    progress("encode", "molecules [Na+]", 3, 10)
    progress("encode", "molecules [Na+]", 7, 10)
    progress._bar.refresh()
    assert "7/10" in out.getvalue() and "[Na+]" in out.getvalue()
    progress("train", "begins", None, None)
    progress.close()
    assert "encode: done in" in out.getvalue() and "train: done in" in out.getvalue()


def test_a_message_cannot_steer_the_terminal():
    out = io.StringIO()
    StageProgress(out)("check", "pairs\x1b[2J.csv", None, None)
    assert out.getvalue() == "check: pairs\ufffd[2J.csv\n"
