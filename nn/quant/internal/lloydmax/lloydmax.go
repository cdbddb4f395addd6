// Package lloydmax finds the scalar quantiser of least mean squared error for the standard normal distribution.
//
// A quantiser with levels c[i] sends x to the nearest one, so that the cells meet halfway between levels. It has the least
// error when moreover each level is the mean of its cell (Lloyd 1957 and 1982; Max, "Quantizing for Minimum Distortion",
// 1960). The density is log-concave, so only one quantiser with a given number of levels satisfies both (Fleischer 1964;
// Trushkin 1982). It is symmetric: the positive half of the levels tells all.
//
// Lloyd's iteration, which moves levels to the means of their cells over and over, takes ten thousands of steps for 256 levels. Solve uses
// Newton's method on c[i] - mean(cell i) = 0, whose Jacobian is tridiagonal, from the levels that companding theory
// gives (Panter and Dite 1951): the quantiles of a normal distribution with standard deviation sqrt 3.
package lloydmax

import (
	"errors"
	"fmt"
	"math"
)

// Solve is the positive half of the 2^bits levels, in increasing order, and the mean squared error. The levels are within 1e-12 of
// the means of their cells. It serves 1 to 10 bits.
func Solve(bits int) (levels []float64, mse float64, err error) {
	if bits < 1 || bits > 10 {
		return nil, 0, fmt.Errorf("lloydmax.Solve: have %d bits, need 1 to 10", bits)
	}
	n := 1 << (bits - 1)
	c := make([]float64, n)
	for i := range c {
		c[i] = math.Sqrt(6) * math.Erfinv(float64(2*i+1)/float64(2*n))
	}
	s := newSystem(n)
	residual := s.evaluate(c)
	for range 100 {
		if residual < 1e-14 {
			break
		}
		s.step()
		// A step that makes it worse, or changes the order of the levels, is too long.
		next, scale := make([]float64, n), 1.0
		for ; scale > 1e-6; scale /= 2 {
			for i := range next {
				next[i] = c[i] - scale*s.delta[i]
			}
			if ordered(next) {
				if r := s.evaluate(next); r < residual {
					residual = r
					break
				}
			}
		}
		if scale <= 1e-6 {
			residual = s.evaluate(c)
			break // as far as float64 goes
		}
		c = next
	}
	if residual > 1e-12 {
		return nil, 0, errors.New("lloydmax.Solve: no convergence")
	}
	return c, s.mse(c), nil
}

func ordered(c []float64) bool {
	for i, v := range c {
		if v <= 0 || i > 0 && v <= c[i-1] {
			return false
		}
	}
	return true
}

// system is c[i] - mean(cell i), with the derivatives by c[i-1], c[i] and c[i+1].
type system struct {
	f, lower, diagonal, upper, delta []float64
}

func newSystem(n int) *system {
	all := make([]float64, 5*n)
	return &system{all[:n], all[n : 2*n], all[2*n : 3*n], all[3*n : 4*n], all[4*n:]}
}

// bounds are the ends of cell i.
func bounds(c []float64, i int) (a, b float64) {
	b = math.Inf(1)
	if i > 0 {
		a = (c[i-1] + c[i]) / 2
	}
	if i+1 < len(c) {
		b = (c[i] + c[i+1]) / 2
	}
	return a, b
}

// evaluate fills the system and gives the greatest residual.
func (s *system) evaluate(c []float64) float64 {
	most := 0.0
	for i, v := range c {
		a, b := bounds(c, i)
		p, m := cell(a, b)
		s.f[i] = v - m
		most = max(most, math.Abs(s.f[i]))
		// Moving an end of the cell by 1 moves its mean by the density there times the distance from the mean, over the
		// mass; half a level's move arrives at the end.
		var da, db float64
		if i > 0 {
			da = density(a) * (m - a) / p / 2
		}
		if !math.IsInf(b, 1) {
			db = density(b) * (b - m) / p / 2
		}
		s.lower[i], s.diagonal[i], s.upper[i] = -da, 1-da-db, -db
	}
	return most
}

// step solves the tridiagonal system for delta (Thomas' algorithm).
func (s *system) step() {
	n := len(s.f)
	up, right := make([]float64, n), make([]float64, n)
	for i := range n {
		d, f := s.diagonal[i], s.f[i]
		if i > 0 {
			d -= s.lower[i] * up[i-1]
			f -= s.lower[i] * right[i-1]
		}
		up[i], right[i] = s.upper[i]/d, f/d
	}
	for i := n - 1; i >= 0; i-- {
		s.delta[i] = right[i]
		if i+1 < n {
			s.delta[i] -= up[i] * s.delta[i+1]
		}
	}
}

// mse is E[x^2] less the part that the levels explain: 1 - E[c^2], which holds where levels are means.
func (s *system) mse(c []float64) float64 {
	// Summed cell by cell as E[(x-c)^2], since the difference above cancels.
	sum := 0.0
	for i, v := range c {
		a, b := bounds(c, i)
		if math.IsInf(b, 1) {
			// The second moment of the tail about v: integral of x^2 is a density + mass.
			p := mass(a)
			sum += a*density(a) + p - 2*v*density(a) + v*v*p
			continue
		}
		sum += quadrature(a, b, func(x float64) float64 { return (x - v) * (x - v) * density(x) })
	}
	return 2 * sum
}

func density(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

// mass is that of the tail from a.
func mass(a float64) float64 { return math.Erfc(a/math.Sqrt2) / 2 }

// cell is the mass of a cell and its mean. Quadrature, where the difference of two values of the error function would cancel.
func cell(a, b float64) (p, mean float64) {
	if math.IsInf(b, 1) {
		p = mass(a)
		return p, density(a) / p
	}
	p = quadrature(a, b, density)
	return p, a + quadrature(a, b, func(x float64) float64 { return (x - a) * density(x) })/p
}

// nodes and weights of the Gauss-Legendre rule, computed once.
var nodes, weights = legendre(24)

// legendre is the rule of n points on -1 .. 1: the roots of the Legendre polynomial by Newton's method.
func legendre(n int) (x, w []float64) {
	x, w = make([]float64, n), make([]float64, n)
	for i := range n {
		z := math.Cos(math.Pi * (float64(i) + 0.75) / (float64(n) + 0.5))
		var slope float64
		for range 50 {
			p, before := 1.0, 0.0
			for k := 1; k <= n; k++ {
				p, before = (float64(2*k-1)*z*p-float64(k-1)*before)/float64(k), p
			}
			slope = float64(n) * (z*p - before) / (z*z - 1)
			move := p / slope
			z -= move
			if math.Abs(move) < 1e-16 {
				break
			}
		}
		x[i], w[i] = z, 2/((1-z*z)*slope*slope)
	}
	return x, w
}

func quadrature(a, b float64, f func(float64) float64) float64 {
	half, middle, sum := (b-a)/2, (a+b)/2, 0.0
	for i, x := range nodes {
		sum += weights[i] * f(middle+half*x)
	}
	return half * sum
}
