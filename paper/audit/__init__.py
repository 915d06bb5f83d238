"""Whether mechanisms keep their promise: true losses by enumeration, and real releases sampled in two worlds."""

from paper.audit.cases import CONTROLS, audited, audited_shapes, controls_caught
from paper.audit.losses import Databases, databases_of, laplace_loss, sampled_loss, worst_count_loss
from paper.audit.page import report

__all__ = [
    "CONTROLS",
    "Databases",
    "audited",
    "audited_shapes",
    "controls_caught",
    "databases_of",
    "laplace_loss",
    "report",
    "sampled_loss",
    "worst_count_loss",
]
