package simt

import (
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// defaultProgram compiles a kernel of the embedded library.
func defaultProgram(t testing.TB, name string, opt Options) *Program {
	t.Helper()
	lib, err := metallib.Read(metallib.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range lib.Functions {
		if f.Name != name {
			continue
		}
		m, err := air.Read(f.Bitcode)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile(m, name, opt)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Fatalf("no kernel %s", name)
	return nil
}

// A q4 is a random MLX 4-bit matrix with a vector.
type q4 struct {
	rows, cols, group int
	packed            []uint32
	sb                []uint16
	x                 []uint16
}

func newQ4(rows, cols, group int) *q4 {
	rng := rand.New(rand.NewSource(1))
	q := &q4{rows: rows, cols: cols, group: group}
	q.packed = make([]uint32, rows*cols/8)
	for i := range q.packed {
		q.packed[i] = rng.Uint32()
	}
	q.sb = make([]uint16, 2*rows*cols/group)
	for i := range q.sb {
		q.sb[i] = uint16(f32ToBFloat(math.Float32bits(rng.Float32()*0.02 - 0.01)))
	}
	q.x = make([]uint16, cols)
	for i := range q.x {
		q.x[i] = uint16(f32ToBFloat(math.Float32bits(rng.Float32()*2 - 1)))
	}
	return q
}

func bf(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// plain is the product as a straightforward Go loop in single precision.
func (q *q4) plain(x, y []float32) {
	for r := 0; r < q.rows; r++ {
		words := q.packed[r*q.cols/8 : (r+1)*q.cols/8]
		sb := q.sb[2*r*q.cols/q.group:]
		var sum float32
		for g := 0; g < q.cols/q.group; g++ {
			var dot, total float32
			xs := x[g*q.group : (g+1)*q.group]
			for i, w := range words[g*q.group/8 : (g+1)*q.group/8] {
				v := xs[8*i : 8*i+8]
				for k := range v {
					dot += float32(w>>(4*k)&15) * v[k]
					total += v[k]
				}
			}
			sum += bf(sb[2*g])*dot + bf(sb[2*g+1])*total
		}
		y[r] = sum
	}
}

func bytesOf[T any](v []T) []byte {
	b := make([]byte, 0, len(v)*4)
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return b
}

func u32Bytes(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

func (q *q4) dispatch() *Dispatch {
	d := &Dispatch{Groups: [3]uint32{uint32(q.rows+7) / 8, 1, 1}, Threads: [3]uint32{64, 1, 1}}
	d.Buffers[0].Mem = bytesOf(q.packed)
	d.Buffers[1].Mem = bytesOf(q.sb)
	d.Buffers[3].Mem = bytesOf(q.x)
	d.Buffers[4].Mem = make([]byte, 4*q.rows)
	d.Buffers[5].Mem = u32Bytes(uint32(q.rows))
	d.Buffers[6].Mem = u32Bytes(uint32(q.cols))
	d.Buffers[7].Mem = u32Bytes(uint32(q.group))
	return d
}

func TestGemvQ4(t *testing.T) {
	for _, shape := range [][3]int{{2048, 2048, 64}, {13, 96, 32}, {1, 512, 128}, {8, 1024, 64}} {
		q := newQ4(shape[0], shape[1], shape[2])
		p := defaultProgram(t, "gemv_q4_mlx_simd", Options{})
		d := q.dispatch()
		if err := p.Run(d, 2); err != nil {
			t.Fatal(err)
		}
		for r := 0; r < q.rows; r++ {
			var want, size float64
			for c := 0; c < q.cols; c++ {
				g := 2 * (r*q.cols + c) / q.group &^ 1
				w := float64(bf(q.sb[g]))*float64(q.packed[(r*q.cols+c)/8]>>(4*(c%8))&15) + float64(bf(q.sb[g+1]))
				want += w * float64(bf(q.x[c]))
				size += math.Abs(w * float64(bf(q.x[c])))
			}
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(d.Buffers[4].Mem[4*r:])))
			if math.Abs(got-want) > 1e-5*size+1e-6 {
				t.Fatalf("%v row %d: %g, want %g", shape, r, got, want)
			}
		}
	}
}

func BenchmarkGemvQ4(b *testing.B) {
	q := newQ4(2048, 2048, 64)
	x, y := make([]float32, q.cols), make([]float32, q.rows)
	for i := range x {
		x[i] = bf(q.x[i])
	}
	b.Run("go", func(b *testing.B) {
		for b.Loop() {
			q.plain(x, y)
		}
	})
	p := defaultProgram(b, "gemv_q4_mlx_simd", Options{})
	d := q.dispatch()
	for _, workers := range []int{1, 2} {
		b.Run(map[int]string{1: "simt-1", 2: "simt-2"}[workers], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(d, workers); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
