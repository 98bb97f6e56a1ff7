"""The kinds of causes by which a step may be excused.

Each judges by both answers (`applies`), and then asks again (`verify`): a reduced step, without
what triggers the difference, on which both servers must agree. `verify` returns the causes that
are beneath it, mostly none, or `None` where the claim does not hold.
"""

from questions import Answer


class Cause:
    def __init__(self, name):
        self.name = name

    def applies(self, difference):
        """Whether both answers, and what was asked, are as this cause makes them."""
        raise NotImplementedError

    def verify(self, difference, judge):
        """Asks the reduced step."""
        raise NotImplementedError


class Rebuilt(Cause):
    """Our answer follows from what both servers answer to a reduced step.

    `reduce(difference)` returns the reduced question and a function that makes of its answer the
    one that is right by MongoDB's rule; or none where the trigger is missing. So the other server
    confirms all of our answer but what the rule adds.
    """

    def __init__(self, name, reduce):
        super().__init__(name)
        self.reduce = reduce

    def applies(self, difference):
        return self.reduce(difference) is not None

    def verify(self, difference, judge):
        question, rebuild = self.reduce(difference)
        ours, theirs = judge.ask(question)
        if ours != theirs:
            return None
        right = rebuild(ours.value) if ours.ok else ours
        right = right if isinstance(right, Answer) else Answer(right)
        return [] if right == difference.ours else None


class Refused(Cause):
    """Our server refuses what the other one accepts or refuses with another error.

    Our answer has this code and this text, `right(difference)` holds by MongoDB's rule, and both
    servers agree on each of the questions `reduce(difference)`, which lack what is refused.
    """

    def __init__(self, name, code, text, right, reduce):
        super().__init__(name)
        self.code, self.text, self.right, self.reduce = code, text, right, reduce

    def applies(self, difference):
        ours = difference.ours
        if ours.ok or self.code not in (None, ours.code) or self.text not in ours.text:
            return False
        return bool(self.right(difference))

    def verify(self, difference, judge):
        for question in self.reduce(difference):
            ours, theirs = judge.ask(question)
            if ours != theirs:
                return None
        return []
