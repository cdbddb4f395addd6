package air

import (
	"encoding/binary"
	"fmt"
)

// A bitError is how the reader gives up: it is thrown as a panic where the input is found wrong and becomes the error of
// Read.
type bitError struct{ msg string }

// The abbreviation ids that every block has.
const (
	abbrevEndBlock = iota
	abbrevEnterBlock
	abbrevDefine
	abbrevUnabbreviated
	abbrevFirstOwn
)

// The encodings of an abbreviation's operands.
const (
	encFixed = 1
	encVBR   = 2
	encArray = 3
	encChar6 = 4
	encBlob  = 5
)

const char6 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"

// An abbrevOp is one operand of an abbreviation: a literal, or a value in some encoding and width.
type abbrevOp struct {
	literal bool
	enc     uint8
	value   uint64 // the literal, or the width
}

type abbrev []abbrevOp

// A bitScope is what is restored when a block ends.
type bitScope struct {
	id      uint64
	width   uint
	abbrevs []abbrev
	end     uint64 // the bit after the block
}

// A bitReader reads LLVM's bitstream container: blocks of records of integers.
type bitReader struct {
	data  []byte
	pos   uint64 // in bits
	limit uint64
	scope bitScope
	outer []bitScope
	// info holds the abbreviations that BLOCKINFO gives to all blocks of an id.
	info    map[uint64][]abbrev
	infoID  uint64
	infoSet bool

	// at is the bit where the current record or block starts, for messages.
	at     uint64
	record []uint64
	blob   []byte
	code   uint64
}

func newBitReader(data []byte) *bitReader {
	return &bitReader{data: data, limit: uint64(len(data)) * 8, scope: bitScope{id: topLevel, width: 2, end: uint64(len(data)) * 8},
		info: map[uint64][]abbrev{}}
}

// fail gives up with a message that says where.
func (b *bitReader) fail(format string, args ...any) {
	panic(bitError{fmt.Sprintf("%s (%s, bit %d)", fmt.Sprintf(format, args...), blockName(b.scope.id), b.at)})
}

// left is the number of bits that remain in the block.
func (b *bitReader) left() uint64 {
	if b.pos >= b.scope.end {
		return 0
	}
	return b.scope.end - b.pos
}

// fixed reads n bits, at most 64.
func (b *bitReader) fixed(n uint) uint64 {
	if uint64(n) > b.left() {
		b.fail("%d bits needed and %d left", n, b.left())
	}
	i, shift := b.pos>>3, uint(b.pos&7)
	b.pos += uint64(n)
	var v uint64
	if i+8 <= uint64(len(b.data)) {
		v = binary.LittleEndian.Uint64(b.data[i:]) >> shift
	} else {
		var tail [8]byte
		copy(tail[:], b.data[i:])
		v = binary.LittleEndian.Uint64(tail[:]) >> shift
	}
	if n+shift > 64 {
		v |= uint64(b.data[i+8]) << (64 - shift)
	}
	if n < 64 {
		v &= 1<<n - 1
	}
	return v
}

// vbr reads a number in groups of n bits, of which the highest says whether another follows.
func (b *bitReader) vbr(n uint) uint64 {
	high := uint64(1) << (n - 1)
	var v uint64
	for shift := uint(0); ; shift += n - 1 {
		g := b.fixed(n)
		d := g & (high - 1)
		if shift >= 64 && d != 0 || shift > 0 && shift < 64 && d>>(64-shift) != 0 {
			b.fail("a variable-width number does not fit 64 bits")
		}
		if shift < 64 {
			v |= d << shift
		}
		if g&high == 0 {
			return v
		}
		if shift > 128 {
			b.fail("a variable-width number does not end")
		}
	}
}

func (b *bitReader) align32() {
	b.pos = (b.pos + 31) &^ 31
}

// An entryKind is what next has found.
type entryKind uint8

const (
	endOfBlock entryKind = iota
	blockEntry
	recordEntry
)

// next goes to the next block or record. Of a block it returns the id, to be followed by enter or skip; of a record
// the code, with the operands in b.record and b.blob (valid until the next call).
func (b *bitReader) next() (entryKind, uint64) {
	for {
		b.at = b.pos
		switch id := b.fixed(b.scope.width); id {
		case abbrevEndBlock:
			b.align32()
			if len(b.outer) == 0 {
				b.fail("a block ends that has not begun")
			}
			if b.pos > b.scope.end {
				b.fail("a block ends beyond its length")
			}
			b.leave()
			return endOfBlock, 0
		case abbrevEnterBlock:
			return blockEntry, b.vbr(8)
		case abbrevDefine:
			b.define()
		case abbrevUnabbreviated:
			b.unabbreviated()
			return recordEntry, b.code
		default:
			if id-abbrevFirstOwn >= uint64(len(b.scope.abbrevs)) {
				b.fail("abbreviation %d is not defined", id)
			}
			b.abbreviated(b.scope.abbrevs[id-abbrevFirstOwn])
			return recordEntry, b.code
		}
	}
}

// enter goes into the block that next has found.
func (b *bitReader) enter(id uint64) {
	width, end := b.header()
	b.outer = append(b.outer, b.scope)
	b.scope = bitScope{id: id, width: width, abbrevs: b.info[id], end: end}
}

// skip steps over the block that next has found.
func (b *bitReader) skip() {
	_, end := b.header()
	b.pos = end
}

func (b *bitReader) header() (width uint, end uint64) {
	w := b.vbr(4)
	b.align32()
	n := b.fixed(32) * 32
	if w < 2 || w > 32 {
		b.fail("a block has abbreviation ids of %d bits", w)
	}
	if n > b.left() {
		b.fail("a block of %d bits, where %d are left", n, b.left())
	}
	return uint(w), b.pos + n
}

func (b *bitReader) leave() {
	b.pos = b.scope.end
	b.scope = b.outer[len(b.outer)-1]
	b.outer = b.outer[:len(b.outer)-1]
}

func (b *bitReader) unabbreviated() {
	b.code = b.vbr(6)
	n := b.vbr(6)
	if n > b.left()/6 {
		b.fail("a record of %d operands, where %d bits are left", n, b.left())
	}
	b.record, b.blob = b.record[:0], nil
	for range n {
		b.record = append(b.record, b.vbr(6))
	}
}

func (b *bitReader) abbreviated(a abbrev) {
	b.record, b.blob = b.record[:0], nil
	for i := 0; i < len(a); i++ {
		switch op := a[i]; {
		case op.literal:
			b.record = append(b.record, op.value)
		case op.enc == encArray:
			n := b.vbr(6)
			elem := a[i+1]
			if w := elem.bits(); n > b.left()/w {
				b.fail("an array of %d, where %d bits are left", n, b.left())
			}
			for range n {
				b.record = append(b.record, b.scalar(elem))
			}
			i++
		case op.enc == encBlob:
			n := b.vbr(6)
			b.align32()
			if n > b.left()/8 {
				b.fail("a blob of %d bytes, where %d bits are left", n, b.left())
			}
			b.blob = b.data[b.pos/8 : b.pos/8+n : b.pos/8+n]
			b.pos += n * 8
			b.align32()
			if b.pos > b.scope.end {
				b.fail("a blob ends beyond its block")
			}
		default:
			b.record = append(b.record, b.scalar(op))
		}
	}
	if len(b.record) == 0 {
		b.fail("a record without a code")
	}
	b.code, b.record = b.record[0], b.record[1:]
}

// bits is the least number of bits that a value of op takes.
func (op abbrevOp) bits() uint64 {
	if op.enc == encChar6 {
		return 6
	}
	return op.value
}

func (b *bitReader) scalar(op abbrevOp) uint64 {
	switch op.enc {
	case encFixed:
		return b.fixed(uint(op.value))
	case encVBR:
		return b.vbr(uint(op.value))
	default:
		return uint64(char6[b.fixed(6)])
	}
}

// definition reads a DEFINE_ABBREV record and checks it, so that records of it can be read without looking again.
func (b *bitReader) definition() abbrev {
	n := b.vbr(5)
	if n == 0 || n > b.left()/2 {
		b.fail("an abbreviation of %d operands", n)
	}
	var a abbrev
	for i := range n {
		if b.fixed(1) == 1 {
			a = append(a, abbrevOp{literal: true, value: b.vbr(8)})
			continue
		}
		op := abbrevOp{enc: uint8(b.fixed(3))}
		switch op.enc {
		case encFixed, encVBR:
			op.value = b.vbr(5)
			if op.value > 64 || op.enc == encVBR && op.value == 1 {
				b.fail("an abbreviation has a field of %d bits", op.value)
			}
			if op.value == 0 { // LLVM has always read these as zero
				op = abbrevOp{literal: true}
			}
		case encArray:
			if i+2 != n {
				b.fail("an abbreviation's array is not its last but one operand")
			}
		case encBlob:
			if i+1 != n {
				b.fail("an abbreviation's blob is not its last operand")
			}
		case encChar6:
		default:
			b.fail("an abbreviation uses encoding %d", op.enc)
		}
		a = append(a, op)
	}
	if last := len(a) - 1; last > 0 && !a[last-1].literal && a[last-1].enc == encArray {
		if e := a[last]; e.literal || e.enc == encArray || e.enc == encBlob {
			b.fail("an abbreviation's array has elements that are no scalars")
		}
	}
	return a
}

// maxAbbrevs is far above what any writer defines for a block; it bounds the work that hostile input can cause.
const maxAbbrevs = 1024

// define reads an abbreviation for this block, or in BLOCKINFO for all blocks of the current id.
func (b *bitReader) define() {
	a := b.definition()
	if b.scope.id == blockInfoBlock {
		if !b.infoSet {
			b.fail("an abbreviation for no block")
		}
		list := b.info[b.infoID]
		if len(list) >= maxAbbrevs {
			b.fail("more than %d abbreviations", maxAbbrevs)
		}
		b.info[b.infoID] = append(list, a)
		return
	}
	if len(b.scope.abbrevs) >= maxAbbrevs {
		b.fail("more than %d abbreviations", maxAbbrevs)
	}
	// A block's list starts as a view of BLOCKINFO's, which must not grow with it.
	b.scope.abbrevs = append(b.scope.abbrevs[:len(b.scope.abbrevs):len(b.scope.abbrevs)], a)
}

// blockInfo reads the BLOCKINFO block that has been entered.
func (b *bitReader) blockInfo() {
	b.infoSet = false
	for {
		switch kind, _ := b.next(); kind {
		case endOfBlock:
			return
		case blockEntry:
			b.skip()
		case recordEntry:
			if b.code == 1 { // SETBID
				if len(b.record) == 0 {
					b.fail("SETBID without an id")
				}
				b.infoID, b.infoSet = b.record[0], true
			}
		}
	}
}
