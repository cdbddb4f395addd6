package main

// rowExactTests are the tests of the products.
const rowExactTests = "TestRowExact(Matvec|Reads|Property|OfEncoded)"

// Row-exact products, and weights of all types.
var rowExactFaults = []fault{
	{File: "row_exact.h", What: "another order of sums for many vectors",
		Old: "float t = fma(weight[r].x, v.x, sum[r][j]);\n                    t = fma(weight[r].y, v.y, t);",
		New: "float t = M > 4u ? fma(weight[r].y, v.y, sum[r][j]) : fma(weight[r].x, v.x, sum[r][j]);\n                    t = M > 4u ? fma(weight[r].x, v.x, t) : fma(weight[r].y, v.y, t);", Tests: rowExactTests},
	{File: "row_exact.h", What: "another order of sums for several rows",
		Old: "for (uint run = thread_index;", New: "for (uint run = NR0 > 1u ? (thread_index + 1u) % (32u * simdgroups) : thread_index;", Tests: rowExactTests},
	{File: "row_exact.h", What: "rows past the last are read",
		Old: "ulong(min(row0 + r, p.n - 1u))", New: "ulong(row0 + r)", Tests: rowExactTests},
	{File: "row_exact.h", What: "rows past the last are written by one simdgroup",
		Old: "} else if (r < p.n - row0) {", New: "} else {", Tests: rowExactTests},
	{File: "row_exact.h", What: "rows past the last are written by several",
		Old: "if (lane == 0u && r < p.n - row0) {", New: "if (lane == 0u) {", Tests: rowExactTests},
	{File: "row_exact.h", What: "all batches have the first vectors",
		Old: "x + ulong(batch) * ulong(p.x_batch_stride / 4u)", New: "x", Tests: rowExactTests},
	{File: "row_exact.h", What: "all batches have the first weights",
		Old: "w + ulong(batch) * p.w_batch_bytes", New: "w", Tests: rowExactTests},
	{File: "row_exact.h", What: "all batches are written to one place",
		Old: "y += ulong(batch) * ulong(p.y_batch_stride) + ulong(row0);", New: "y += ulong(row0);", Tests: rowExactTests},
	{File: "row_exact.h", What: "sums are read before they are there",
		Old: "    threadgroup_barrier(mem_flags::mem_threadgroup);\n", New: "", Tests: rowExactTests},
	{File: "row_exact.h", What: "sums of two vectors in one place",
		Old: "partial[(r * M + j) * 32u + simdgroup] = v;", New: "partial[(r * M + j / 2u) * 32u + simdgroup] = v;", Tests: rowExactTests},

	{File: "weights.h", What: "unsigned codes of Q8_0",
		Old: "as_type<char4>(ingot_bytes4(s.codes + 2u * i))", New: "as_type<uchar4>(ingot_bytes4(s.codes + 2u * i))", Tests: rowExactTests},
	{File: "weights.h", What: "one code of IQ4_NL",
		Old: "38.0f, 53.0f", New: "37.0f, 53.0f", Tests: rowExactTests},
	{File: "weights.h", What: "the fifth bits of a block's first half for both",
		Old: "[1u + run % 2u]", New: "[1u]", Tests: rowExactTests},
	{File: "weights.h", What: "a fifth bit in two codes",
		Old: "0x00204081u & 0x01010101u", New: "0x00204081u & 0x01010103u", Tests: rowExactTests},
	{File: "weights.h", What: "the top of an offset from the scale",
		Old: "last >> 4u | high >> 6u << 4u", New: "last >> 4u | low >> 6u << 4u", Tests: rowExactTests},
	{File: "weights.h", What: "the fifth bit of Q5_K of another run",
		Old: "s.high[i] >> s.run & 0x01010101u", New: "s.high[i] >> s.run / 2u & 0x01010101u", Tests: rowExactTests},
	{File: "weights.h", What: "one scale of Q6_K for a weight too many",
		Old: "i < 4u ? s.d.x : s.d.y", New: "i <= 4u ? s.d.x : s.d.y", Tests: rowExactTests},

	{File: "row_exact_matvec.metal", What: "a vector too few",
		Old: "ingot_row_exact<W, NR0, M>(w, x,", New: "ingot_row_exact<W, NR0, (M > 5u ? M - 1u : M)>(w, x,", Tests: rowExactTests},
	{File: "row_exact_matvec.metal", What: "the sum of a simdgroup too many",
		Old: "lane, simdgroup, simdgroups);", New: "lane, simdgroup, simdgroups + 1u);", Tests: rowExactTests},
}
