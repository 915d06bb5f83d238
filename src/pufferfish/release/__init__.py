"""The one place where rows meet noise: a private value, and the record of what was promised."""

from pufferfish.release.again import commands_of
from pufferfish.release.certificate import PROOF, Certificate, certify
from pufferfish.release.measurement import release_measurement
from pufferfish.release.postprocessing import project_to_simplex
from pufferfish.release.record import MEASUREMENT, RELEASE
from pufferfish.release.release import EachRelease, MeasurementRelease, Release, ReleasePlan, plan, prepare, release
from pufferfish.release.released_check import LeaksTo, ReleasedCheck, ReleasedNumber, check_released
from pufferfish.release.series import ReleaseSeries, series
from pufferfish.release.store import prepare_each, release_each
from pufferfish.release.sums import totals
from pufferfish.release.verification import Finding, Verification, verify_together
from pufferfish.release.verify import verify
