"""The Common Expression Language, as Kubernetes has it.  Pure: expressions read only the values they are given.

    program = Environment({"self": INT}).compile("self > 1")
    program.evaluate({"self": 2})  # True

From the text to the value:

- ``lexer``: the text as tokens
- ``parser``: tokens as a tree; macros such as ``all`` are nodes of their own
- ``nodes``: the tree
- ``types``: types, which of them fit which, and signatures of functions
- ``checker``: gives every node its type, and says what does not fit
- ``cost``: what an expression may cost, estimated from its types; ``prices``: what functions charge as they run
- ``compiling``: the checked tree as nested Python functions that count their cost
- ``loops``: macros that go through a list or map; ``equality``: when values of schemas are equal
- ``library``: the functions, one module per library
- ``values``: the values of expressions, and when two are equal
- ``errors``: what can go wrong, with Kubernetes' sentences
- ``environment``: the variables, functions and types that expressions can use, and the programs made from them

``docs/choices.md`` says why this is no package from PyPI.
"""

from seamark.cel.environment import Environment, Program
from seamark.cel.errors import CelError, CompileError, CostError, EvaluationError

__all__ = ["CelError", "CompileError", "CostError", "Environment", "EvaluationError", "Program"]
