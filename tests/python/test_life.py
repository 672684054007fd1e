"""Who we are, by the variables of torchrun and of Slurm: the same token on all ranks of a start,
another one with the next."""
import pytest
from weir import life

VARIABLES = ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
             "SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")


@pytest.fixture
def start(monkeypatch):
    """A process that has just been started with these variables and no others."""
    monkeypatch.setattr(life, "process_group", lambda: None)

    def begin(**variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(life, "_opened", {})
    return begin


def token(run="r", ranks=2):
    return life.token_for(run, 0, ranks)


def elastic(restart="0", job="17"):
    return {"RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": job,
            "TORCHELASTIC_RESTART_COUNT": restart}


def slurm(restart="0", job="900", step="0"):
    return {"SLURM_PROCID": "2", "SLURM_NTASKS": "8", "SLURM_JOB_ID": job, "SLURM_STEP_ID": step,
            "SLURM_RESTART_COUNT": restart}


@pytest.mark.parametrize("variables, who", [
    ({}, (0, 1)), (elastic(), (1, 4)), (slurm(), (2, 8)), ({**slurm(), **elastic()}, (1, 4)),
    ({"RANK": "x", "WORLD_SIZE": "4"}, (0, 1)), ({"RANK": "3"}, (0, 1))])
def test_rank_and_ranks(start, variables, who):
    start(**variables)
    assert life.rank_and_ranks() == who


@pytest.mark.parametrize("now, then", [
    (elastic(), elastic(restart="1")), (elastic(), elastic(job="18")),
    (slurm(), slurm(restart="1")), (slurm(), slurm(job="901")), (slurm(), slurm(step="1")),
    (elastic(), slurm())])
def test_a_token_is_the_starts(start, now, then):
    start(**now)
    first = token()
    assert len(first) == life.TOKEN_BYTES
    assert token() != first, "opened twice in one start: two lives"
    assert token("other") != first
    start(**{**now, "RANK": "3", "SLURM_PROCID": "3"})
    assert token() == first, "another rank of the same start"
    start(**then)
    assert token() != first


@pytest.mark.parametrize("variables", [
    {}, {"TORCHELASTIC_RUN_ID": "none"}, {"SLURM_JOB_ID": "900"}])
def test_without_a_start_there_is_no_token(start, variables):
    start(**variables)
    assert token(ranks=1) is None
    with pytest.raises(ValueError, match="2 ranks need a token"):
        token()


def test_a_token_that_is_given():
    assert life.token_for("r", 0, 2, b"0123456789abcdef") == b"0123456789abcdef"
    assert life.token_for("r", 0, 2, "job") == life.token_for("r", 1, 2, "job")
    assert life.token_for("r", 0, 2, "job") != life.token_for("r", 0, 2, "job 2")
