"""The paper's tables and figures, made again, and an audit of what every mechanism promises: no part of the package."""
