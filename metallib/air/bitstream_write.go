package air

import "encoding/binary"

// A bitWriter writes LLVM's bitstream container.
type bitWriter struct {
	buf  []byte
	cur  uint64
	n    uint // bits in cur
	wide uint // the width of abbreviation ids in this block
	// own are the abbreviations of this block by id, from abbrevFirstOwn on.
	own   []abbrev
	outer []openBlock
	info  map[uint64][]abbrev
}

type openBlock struct {
	wide   uint
	own    []abbrev
	sizeAt int // where the length of the inner block goes
}

func newBitWriter() *bitWriter {
	return &bitWriter{wide: 2, info: map[uint64][]abbrev{}}
}

// fixed writes the n low bits of v, n at most 64.
func (w *bitWriter) fixed(v uint64, n uint) {
	if n < 64 {
		v &= 1<<n - 1
	}
	w.cur |= v << w.n
	if w.n+n < 64 {
		w.n += n
		return
	}
	w.buf = binary.LittleEndian.AppendUint64(w.buf, w.cur)
	used := 64 - w.n
	w.cur = 0
	if used < 64 {
		w.cur = v >> used
	}
	w.n = n - used
}

func (w *bitWriter) vbr(v uint64, n uint) {
	high := uint64(1) << (n - 1)
	for v >= high {
		w.fixed(v&(high-1)|high, n)
		v >>= n - 1
	}
	w.fixed(v, n)
}

// align32 pads to a 32-bit boundary and empties the accumulator.
func (w *bitWriter) align32() {
	if pad := (32 - w.bit()%32) % 32; pad != 0 {
		w.fixed(0, uint(pad))
	}
	if w.n == 32 {
		w.buf = binary.LittleEndian.AppendUint32(w.buf, uint32(w.cur))
		w.cur, w.n = 0, 0
	}
}

// bit is the number of bits written.
func (w *bitWriter) bit() uint64 { return uint64(len(w.buf))*8 + uint64(w.n) }

// patch32 overwrites 32 bits that have been written before and left the accumulator.
func (w *bitWriter) patch32(bit uint64, v uint32) {
	i, shift := bit/8, bit%8
	n := min(i+8, uint64(len(w.buf)))
	var word [8]byte
	copy(word[:], w.buf[i:n])
	x := binary.LittleEndian.Uint64(word[:])&^(0xFFFFFFFF<<shift) | uint64(v)<<shift
	binary.LittleEndian.PutUint64(word[:], x)
	copy(w.buf[i:n], word[:])
}

// enter begins a block with abbreviation ids of the given width.
func (w *bitWriter) enter(id uint64, wide uint) {
	w.fixed(abbrevEnterBlock, w.wide)
	w.vbr(id, 8)
	w.vbr(uint64(wide), 4)
	w.align32()
	w.outer = append(w.outer, openBlock{w.wide, w.own, len(w.buf)})
	w.buf = append(w.buf, 0, 0, 0, 0)
	w.wide = wide
	w.own = append([]abbrev(nil), w.info[id]...)
}

// end ends the block.
func (w *bitWriter) end() {
	w.fixed(abbrevEndBlock, w.wide)
	w.align32()
	o := w.outer[len(w.outer)-1]
	w.outer = w.outer[:len(w.outer)-1]
	binary.LittleEndian.PutUint32(w.buf[o.sizeAt:], uint32(len(w.buf)-o.sizeAt-4)/4)
	w.wide, w.own = o.wide, o.own
}

// record writes an unabbreviated record.
func (w *bitWriter) record(code uint64, ops ...uint64) {
	w.fixed(abbrevUnabbreviated, w.wide)
	w.vbr(code, 6)
	w.vbr(uint64(len(ops)), 6)
	for _, op := range ops {
		w.vbr(op, 6)
	}
}

// text writes an unabbreviated record whose operands end with characters.
func (w *bitWriter) text(code uint64, s string, ops ...uint64) {
	w.fixed(abbrevUnabbreviated, w.wide)
	w.vbr(code, 6)
	w.vbr(uint64(len(ops)+len(s)), 6)
	for _, op := range ops {
		w.vbr(op, 6)
	}
	for i := range len(s) {
		w.vbr(uint64(s[i]), 6)
	}
}

// define defines an abbreviation in this block and returns its id.
func (w *bitWriter) define(a abbrev) uint64 {
	w.fixed(abbrevDefine, w.wide)
	w.definition(a)
	w.own = append(w.own, a)
	return uint64(len(w.own)-1) + abbrevFirstOwn
}

func (w *bitWriter) definition(a abbrev) {
	w.vbr(uint64(len(a)), 5)
	for _, op := range a {
		if op.literal {
			w.fixed(1, 1)
			w.vbr(op.value, 8)
			continue
		}
		w.fixed(0, 1)
		w.fixed(uint64(op.enc), 3)
		if op.enc == encFixed || op.enc == encVBR {
			w.vbr(op.value, 5)
		}
	}
}

// abbreviated writes a record by abbreviation id; the code is ops[0]. A blob goes where the abbreviation has it.
func (w *bitWriter) abbreviated(id uint64, blob []byte, ops ...uint64) {
	w.fixed(id, w.wide)
	a := w.own[id-abbrevFirstOwn]
	for i := 0; i < len(a); i++ {
		switch op := a[i]; {
		case op.literal:
			ops = ops[1:]
		case op.enc == encArray:
			w.vbr(uint64(len(ops)), 6)
			for _, v := range ops {
				w.scalar(a[i+1], v)
			}
			return
		case op.enc == encBlob:
			w.vbr(uint64(len(blob)), 6)
			w.align32()
			w.buf = append(w.buf, blob...)
			for len(w.buf)%4 != 0 {
				w.buf = append(w.buf, 0)
			}
			return
		default:
			w.scalar(op, ops[0])
			ops = ops[1:]
		}
	}
}

func (w *bitWriter) scalar(op abbrevOp, v uint64) {
	switch op.enc {
	case encFixed:
		w.fixed(v, uint(op.value))
	case encVBR:
		w.vbr(v, uint(op.value))
	case encChar6:
		w.fixed(uint64(char6Index[byte(v)]), 6)
	}
}

var char6Index = func() (t [256]uint8) {
	for i := range len(char6) {
		t[char6[i]] = uint8(i)
	}
	return t
}()

// isChar6 tells whether all of s can be written in six bits a character.
func isChar6(s string) bool {
	for i := range len(s) {
		if char6Index[s[i]] == 0 && s[i] != 'a' {
			return false
		}
	}
	return true
}

// isASCII tells whether all of s can be written in seven bits a character.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// These make the operands of abbreviations.
func lit(v uint64) abbrevOp        { return abbrevOp{literal: true, value: v} }
func fixedOp(bits uint64) abbrevOp { return abbrevOp{enc: encFixed, value: bits} }
func vbrOp(bits uint64) abbrevOp   { return abbrevOp{enc: encVBR, value: bits} }

var (
	arrayOp = abbrevOp{enc: encArray}
	char6Op = abbrevOp{enc: encChar6}
	blobOp  = abbrevOp{enc: encBlob}
)
