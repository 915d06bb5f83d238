"""Faults made on purpose: killed programs, full disks, engines that break off, clocks set back, flipped bits.

Run them by ``make faults``, which writes ``docs/faults.md``, or a part by ``python tests/faults/run.py disks clock``.
Every trial runs in a process of its own, most of them a whole command, and after each it is looked at that

- nothing was released that is not in the ledger's book, and what is spent never falls;
- each file is absent, as it was before, or whole; no hidden file stays once another command ran;
- the same command works again, or says in one line what to do.

A trial that breaks one of these is printed, and the program ends with exit code 1. Each kind of fault is a file with a
function that yields a row of the table for each of its series of trials. The usual tests try some of the same faults
(they are named in the table); this is for those who change how files are written.
"""
