"""Coverage of intervals, false alarms and power of claims: ``make calibrate``. Chapter: trust."""
