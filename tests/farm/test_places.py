from __future__ import annotations

from pathlib import Path

from farm.places import FarmPlaces

OUTPUT = Path("out put")
PLACES = FarmPlaces(OUTPUT)


def test_places_of_the_farm_s_own_stand_in_its_own_folder() -> None:
    own = OUTPUT / ".farm"
    job = "export-0123456789abcdef"
    found = {
        PLACES.plan,
        PLACES.measured,
        PLACES.scratch,
        PLACES.outcome(job),
        PLACES.died(job),
        PLACES.log(job),
        PLACES.report(job, 0),
        PLACES.report(job, 1),
    }
    assert PLACES.own == own
    assert {path.relative_to(own).as_posix() for path in found} == {
        "plan.json",
        "measured.json",
        "twice",
        f"outcomes/{job}.json",
        f"died/{job}.json",
        f"logs/{job}.log",
        f"reports/{job}.0.json",
        f"reports/{job}.1.json",
    }


def test_places_of_what_a_person_looks_at_stand_in_the_output_itself() -> None:
    assert (PLACES.catalogue, PLACES.page) == (OUTPUT / "catalogue.json", OUTPUT / "catalogue.html")
