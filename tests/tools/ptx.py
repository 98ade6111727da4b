"""Runs a PTX kernel on the CPU, thread by thread, as a device with independent threads does: what only a GPU runs otherwise, warps that wait for each other.

  kernel = Kernel(text, 'bend_flat');  memory = Memory(BASE, bytes);  kernel.launch(memory, blocks, threads, parameters, seed, calls=...)

A thread runs until it meets an instruction for its whole warp (bar.warp.sync, vote, shfl, activemask). That is executed when all threads of the warp that have not
ended are there; threads at different ones are an error. Warps take turns in an order that `seed` picks. A load outside of what there is is an error, as is a warp that
waits for longer than `patience` turns of each in which nobody stores. `calls`: what functions that end their thread do first, by name: f(memory, registers), arguments in `param0`, .. What the emitters make is understood, no more: anything else is an error.
"""
import random
import re

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


class PtxError(Exception):
    pass


class Memory:
    """Words of four bytes from `base` on."""

    def __init__(self, base, size, name='memory'):
        self.base, self.words, self.name, self.stores = base, [0] * (size // 4), name, 0

    def index(self, address, size):
        at = (address - self.base) & M64
        if at % size or at // 4 + max(1, size // 4) > len(self.words):
            raise PtxError(f'{self.name}: {size} bytes at {address:#x}')
        return at // 4

    def aligned(self, address, size):
        if address % size:
            raise PtxError(f'{self.name}: {size} bytes at {address:#x}')

    def load(self, address, size):
        if size == 1:
            return self.words[self.index(address & ~3, 4)] >> 8 * (address & 3) & 255
        i = self.index(address, size)
        return self.words[i] if size == 4 else self.words[i] | self.words[i + 1] << 32

    def store(self, address, size, value):
        i = self.index(address, size)
        self.stores += 1
        self.words[i] = value & M32
        if size == 8:
            self.words[i + 1] = value >> 32 & M32


class Registers(dict):
    """What nobody has written is anything: a value that was poison."""

    def __missing__(self, key):
        return 1 if key[0] == 'p' else 0xBAD0BAD


class Exit(Exception):
    pass


def signed(value, bits):
    return value - (1 << bits) if value >> bits - 1 & 1 else value


OPS2 = {'add': '+', 'sub': '-', 'and': '&', 'or': '|', 'xor': '^'}
COMPARE = {'eq': '==', 'ne': '!=', 'lt': '<', 'le': '<=', 'gt': '>', 'ge': '>=', 'lo': '<', 'ls': '<=', 'hi': '>', 'hs': '>='}


class Kernel:
    def __init__(self, text, name):
        start = text.index(f'.entry {name}(')
        head = text[:start]
        self.shared = {}
        at = 0
        for align, symbol, size in re.findall(r'\.shared \.align (\d+) \.b8 (\S+)\[(\d+)\];', head):
            at = -(-at // int(align)) * int(align)
            self.shared[symbol] = at
            at += int(size)
        self.shared_bytes = at
        body = text[start:]
        body = body[:body.index('\n}\n')]
        self.params = re.findall(r'\.param [^\n]*?(\w+_param_\d+)', body)
        self.blocks, self.labels = [], {}
        self.compile(body[body.index('\n{') + 2:])

    # ---- to Python ----

    def reg(self, name):
        return "R['" + name[1:] + "']"

    def operand(self, text):
        text = text.strip()
        if text in ('%tid.x', '%ctaid.x', '%nctaid.x', '%laneid', '%ntid.x'):
            return "S['" + text[1:] + "']"
        if text.startswith('%'):
            return self.reg(text)
        if text in self.shared:
            return str(self.shared[text])
        return f'({int(text, 0)} & {M64})'

    def address(self, text):
        base, plus = re.fullmatch(r'\[([^+\]]+)(?:\+(-?\d+))?\]', text.strip()).groups()
        return f'({self.operand(base)} + {plus or 0} & {M64})'

    def compile(self, body):
        current, tables = [], {}
        sources = []

        def cut(label=None):
            nonlocal current
            sources.append(current)
            current = []
            if label:
                self.labels[label] = len(sources)

        statements, pending, inside = [], '', False
        for line in body.splitlines():
            line = re.sub(r'//.*', '', line).strip()
            # The upper half of a word.
            line = re.sub(r'^\{ \.reg \.b16 tmp; mov\.b32 \{tmp, (%rs\d+)\}, (%r\d+); \}$', r'upper.b32 \1, \2;', line)
            line = re.sub(r'^\{ \.reg \.b32 tmp; mov\.b64 \{tmp, (%r\d+)\}, (%rd\d+); \}$', r'upper.b64 \1, \2;', line)
            if line.startswith('{') and len(line) > 1:
                raise PtxError('no ' + line)
            if not line or line.startswith(('.visible', '.param', '.maxntid', '.minnctapersm', '.reg', '.pragma', ')', '{', '}')) and '.branchtargets' not in line and 'call' not in line:
                continue
            label = re.fullmatch(r'(\$L_\w+):', line)
            if label and not pending:
                statements.append(('label', label[1]))
                continue
            pending += ' ' + line
            if pending.endswith(';'):
                statements.append(('code', pending.strip()[:-1].strip()))
                pending = ''
        for kind, text in statements:
            table = re.fullmatch(r'(\$L_brx_\d+): \.branchtargets\s*(.*)', text, re.S)
            if table:
                tables[table[1]] = [t.strip() for t in table[2].split(',')]
        self.tables = tables
        for kind, text in statements:
            if kind == 'label':
                cut(text)
                continue
            if '.branchtargets' in text:
                continue
            guard = re.match(r'@(!?)(%p\d+)\s+(.*)', text, re.S)
            condition = None
            if guard:
                condition = ('not ' if guard[1] else '') + self.reg(guard[2])
                text = guard[3]
            op, _, rest = text.partition('\t') if '\t' in text else text.partition(' ')
            op = op.strip()
            args = [a.strip() for a in re.findall(r'\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*', rest)]
            if op in ('bra', 'bra.uni'):
                current.append(f'{f"if {condition}: " if condition else ""}return L[{args[0]!r}]')
                continue
            if op == 'brx.idx':
                current.append(f'return L[T[{args[1]!r}][{self.operand(args[0])}]]')
                continue
            if op in ('ret', 'exit'):
                current.append(f'{f"if {condition}: " if condition else ""}return None')
                continue
            if 'call' in op:
                # Only what does not come back is called.
                current.append(f"G.calls[{args[0]!r}](G, R); raise Exit()")
                continue
            sync = self.sync(op, args)
            if sync:
                if condition:
                    raise PtxError('a guarded ' + op)
                current.append(f'return ({sync}, {len(sources) + 1})')
                cut()
                continue
            code = self.plain(op, args)
            if condition:
                code = f'if {condition}: ' + code
            current.append(code)
        cut()
        text = []
        for i, lines in enumerate(sources):
            text.append(f'def b{i}(R, S, G, H):')
            text += ['  ' + line for line in lines] + [f'  return {i + 1}']
        scope = {'L': self.labels, 'T': tables, 'signed': signed, 'Exit': Exit}
        exec('\n'.join(text), scope)
        self.blocks = [scope[f'b{i}'] for i in range(len(sources))]

    def sync(self, op, args):
        if op == 'bar.warp.sync':
            return "('bar',)"
        if op.startswith('vote.sync.'):
            return f"('{op.split('.')[2]}', '{args[0][1:]}', {'1' if args[1] in ('-1', '1') else self.operand(args[1])})"
        if op.startswith('shfl.sync.'):
            return f"('shfl.{op.split('.')[2]}', '{args[0][1:]}', {self.operand(args[1])}, {self.operand(args[2])}, {self.operand(args[3])})"
        if op == 'activemask.b32':
            return f"('active', '{args[0][1:]}')"
        return None

    def plain(self, op, args):
        parts = op.split('.')
        name, kind = parts[0], parts[-1]
        o = [a if a.startswith(('[', '{')) else self.operand(a) for a in args]
        d = o[0] if o else ''
        if 'param' in parts:
            return f"{d} = G.parameters[{args[1][1:-1]!r}]" if name == 'ld' else f"R[{args[0][1:-1]!r}] = {o[1]}"
        if name in ('ld', 'st'):
            memory = 'H' if 'shared' in parts else 'G'
            size = {'8': 1, '2': 4, '4': 8}.get(kind[-1], 4) if kind in ('b8', 'u8') else int(kind[1:]) // 8
            place = self.address(args[0 if name == 'st' else 1])
            value = args[1 if name == 'st' else 0]
            regs = [self.operand(r) for r in value[1:-1].split(',')] if value.startswith('{') else [self.operand(value)]
            check = f'{memory}.aligned({place}, {size * len(regs)}); ' if len(regs) > 1 else ''
            if name == 'ld':
                return check +  '; '.join(f'{r} = {memory}.load({place} + {i * size}, {size})' for i, r in enumerate(regs))
            return check + '; '.join(f'{memory}.store({place} + {i * size}, {size}, {r})' for i, r in enumerate(regs))
        if name == 'atom':
            size = int(kind[1:]) // 8
            place = self.address(args[1])
            if parts[-2] == 'add':
                return f'a = {place}; v = G.load(a, {size}); G.store(a, {size}, v + {o[2]}); {d} = v'
            raise PtxError('no ' + op)
        if name in ('fence', 'membar', 'nanosleep'):
            return 'pass'
        bits = int(kind[1:]) if kind[1:] in ('16', '64') else 32
        mask = 1 if kind == 'pred' else (1 << bits) - 1
        if name == 'upper':
            return f'{d} = {o[1]} >> {bits // 2}'
        if name == 'mov' or name == 'cvta':
            return f'{d} = {o[1]} & {mask}'
        if name == 'cvt':
            source = parts[-1]
            value = f'signed({o[1]}, {source[1:]})' if source[0] == 's' else f'({o[1]} & {(1 << int(source[1:])) - 1})'
            return f'{d} = {value} & {(1 << int(parts[-2][1:])) - 1}'
        if name in OPS2:
            return f'{d} = ({o[1]} {OPS2[name]} {o[2]}) & {mask}'
        if name == 'not':
            return f'{d} = ~{o[1]} & {mask}'
        if name == 'neg':
            return f'{d} = -{o[1]} & {mask}'
        if name == 'shl':
            return f'{d} = ({o[1]} << min({o[2]} & {M32}, {bits})) & {mask}'
        if name == 'shr':
            value = f'signed({o[1]}, {bits})' if kind[0] == 's' else o[1]
            return f'{d} = ({value} >> min({o[2]} & {M32}, {bits})) & {mask}'
        if name in ('min', 'max'):
            x, y = (f'signed({v} & {mask}, {bits})' if kind[0] == 's' else f'({v} & {mask})' for v in o[1:3])
            return f'{d} = {name}({x}, {y}) & {mask}'
        if name == 'mul':
            if parts[1] == 'wide':
                x, y = (f'signed({v} & {mask}, {bits})' if kind[0] == 's' else f'({v} & {mask})' for v in o[1:3])
                return f'{d} = {x} * {y} & {M64}'
            if parts[1] == 'lo':
                return f'{d} = {o[1]} * {o[2]} & {mask}'
            if parts[1] == 'hi' and kind[0] == 'u':
                return f'{d} = ({o[1]} & {mask}) * ({o[2]} & {mask}) >> {bits}'
        if name == 'mad' and parts[1] == 'lo':
            return f'{d} = {o[1]} * {o[2]} + {o[3]} & {mask}'
        if name in ('div', 'rem') and kind[0] == 'u':
            return f"{d} = {o[1]} {'//' if name == 'div' else '%'} {o[2]}"
        if name == 'bfe':
            # Of a field that lies within the word.
            value = f'({o[1]} >> ({o[2]} & 255)) & ((1 << ({o[3]} & 255)) - 1)'
            return f'{d} = signed({value}, {o[3]}) & {mask}' if kind[0] == 's' else f'{d} = {value}'
        if name == 'bfi':
            field = f'((1 << ({o[4]} & 255)) - 1 << ({o[3]} & 255))'
            return f'{d} = (({o[2]} & ~{field}) | ({o[1]} << ({o[3]} & 255) & {field})) & {mask}'
        if name == 'shf' and parts[1:3] == ['l', 'wrap']:
            return f'{d} = (({o[2]} << 32 | {o[1]}) << ({o[3]} & 31) >> 32) & {M32}'
        if name == 'selp':
            return f'{d} = ({o[1]} if {o[3]} else {o[2]}) & {mask}'
        if name == 'setp':
            x, y = (f'signed({v} & {mask}, {bits})' if kind[0] == 's' else f'({v} & {mask})' for v in o[1:3])
            return f'{d} = int({x} {COMPARE[parts[1]]} {y})'
        raise PtxError('no ' + op)

    # ---- a launch ----

    def launch(self, memory, blocks, threads, parameters, seed=0, patience=300, calls=None):
        memory.parameters, memory.calls = dict(zip(self.params, parameters)), calls or {}
        order = random.Random(seed)
        warps = []
        for block in range(blocks):
            shared = Memory(0, -(-self.shared_bytes // 16) * 16, 'shared memory')
            shared.words = [order.getrandbits(32) for _ in shared.words]
            for warp in range(threads // 32):
                lanes = []
                for lane in range(32):
                    special = {'tid.x': warp * 32 + lane, 'ctaid.x': block, 'nctaid.x': blocks, 'laneid': lane, 'ntid.x': threads}
                    lanes.append([Registers(), special, 0])
                warps.append((lanes, shared))
        ended = 0   # threads by `exit` in the midst of their work
        idle = stores = 0
        while warps:
            turn = order.randrange(len(warps))
            lanes, shared = warps[turn]
            for _ in range(order.choice((1, 3, 40))):
                waiting, over = [], []
                for lane in lanes:
                    at = lane[2]
                    if isinstance(at, tuple):
                        waiting.append(lane)
                        continue
                    while True:
                        try:
                            at = self.blocks[at](lane[0], lane[1], memory, shared)
                        except Exit:
                            at = None
                            ended += 1
                        if at is None or isinstance(at, tuple):
                            break
                    lane[2] = at
                    (over if at is None else waiting).append(lane)
                lanes[:] = waiting
                if not waiting:
                    break
                self.together(waiting)
            if not lanes:
                warps.pop(turn)
                idle = 0
            idle = idle + 1 if memory.stores == stores else 0
            stores = memory.stores
            if idle > patience * max(1, len(warps)):
                raise PtxError('warps wait for what never comes')
        return ended

    def together(self, lanes):
        places = {lane[2][1] for lane in lanes}
        kinds = {lane[2][0][0] for lane in lanes}
        if 'active' in kinds:
            # Those that are there find each other; the others wait for them.
            here = [lane for lane in lanes if lane[2][0][0] == 'active']
            first = here[0][2][1]
            here = [lane for lane in here if lane[2][1] == first]
            mask = sum(1 << lane[1]['laneid'] for lane in here)
            for lane in here:
                lane[0][lane[2][0][1]] = mask
                lane[2] = first
            return
        if len(places) != 1:
            raise PtxError(f'threads of a warp wait at different places: {kinds}')
        kind = kinds.pop()
        by = {lane[1]['laneid']: lane for lane in lanes}
        if kind == 'ballot':
            value = sum(1 << i for i, lane in by.items() if lane[2][0][2])
            results = {i: value for i in by}
        elif kind in ('all', 'any'):
            value = int((all if kind == 'all' else any)(lane[2][0][2] for lane in lanes))
            results = {i: value for i in by}
        elif kind.startswith('shfl'):
            results = {}
            for i, lane in by.items():
                _, _, value, other, clamp = lane[2][0]
                j = {'shfl.idx': other & 31, 'shfl.bfly': i ^ other, 'shfl.up': i - other}[kind]
                if kind == 'shfl.up' and j < 0 or j > 31:
                    j = i
                if j not in by:
                    raise PtxError('a shuffle from a thread that has ended')
                results[i] = by[j][2][0][2]
        else:
            results = None
        for i, lane in by.items():
            if results is not None:
                lane[0][lane[2][0][1]] = results[i]
            lane[2] = lane[2][1]
