"""Pieces of generated programs: {i} numbers the copy, {{ }} are braces."""

# A data type, a function that rebuilds it and a fold with a fork.
TREE = """type T{i} is Data:
  Leaf{i}{{}}
  Node{i}{{left: T{i}, value: U32, right: T{i}}}

def insert{i}(t: T{i}, +x: U32) -> T{i}:
  match t:
    case Leaf{i}{{}}:
      Node{i}{{Leaf{i}{{}}, (x * {i} : U32), Leaf{i}{{}}}}
    case Node{i}{{l, v, r}}:
      Node{i}{{insert{i}(r, x), v, l}}

def sum{i}(t: T{i}) -> U32:
  match t:
    case Leaf{i}{{}}:
      0
    case Node{i}{{l, v, r}}:
      a b = sum{i}(l) sum{i}(r)
      (a + b + v : U32)
"""
