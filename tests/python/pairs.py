"""Cases that cover all pairs of values of several factors, few and always the same ones."""
import itertools


def all_pairs(factors):
    """factors: name -> list of values. Yields dicts, one value each, such that any two values of two factors meet in one of them.

    Greedy: each case starts from a pair that is still open and takes for every other factor the value that closes most open pairs.
    """
    names = sorted(factors, key=lambda name: -len(factors[name]))
    open_pairs = {(i, a, j, b): None for i, j in itertools.combinations(range(len(names)), 2)
                  for a in range(len(factors[names[i]])) for b in range(len(factors[names[j]]))}

    def closes(case, j, b):
        return sum(((i, a, j, b) if i < j else (j, b, i, a)) in open_pairs for i, a in case.items())

    number = 0
    while open_pairs:
        i, a, j, b = next(iter(open_pairs))
        case = {i: a, j: b}
        for k in range(len(names)):
            if k not in case:
                # ties go round, so that values of short lists take turns
                values = range(len(factors[names[k]]))
                case[k] = max(values, key=lambda v: (closes(case, k, v), -((v - number) % len(values))))
        for pair in itertools.combinations(sorted(case), 2):
            open_pairs.pop((pair[0], case[pair[0]], pair[1], case[pair[1]]), None)
        number += 1
        yield {names[k]: factors[names[k]][v] for k, v in case.items()}
