package runtime

// selfGEMMInt8 multiplies signed bytes, the weights transposed, with scales for columns and rows, over ragged tiles. All
// numbers of the answer are exact.
func selfGEMMInt8(m *selfMemory) (groups, threads Size) {
	const rows, cols, k = 33, 35, 67
	code := func(i, seed int) int8 { return int8((i*73+i/9+seed)%256 - 128) }
	a, b := make([]int8, rows*k), make([]int8, cols*k)
	for i := range a {
		a[i] = code(i, 3)
	}
	for i := range b {
		b[i] = code(i, 50)
	}
	columns, perRow := make([]float32, cols), make([]float32, rows)
	for i := range columns {
		columns[i] = float32(int(1)<<(i%7)) / 64
	}
	for i := range perRow {
		perRow[i] = float32(int(1) << (i % 3))
	}
	want := make([]float64, rows*cols)
	for i := range want {
		sum := 0
		for j := range k {
			sum += int(a[i/cols*k+j]) * int(b[i%cols*k+j])
		}
		want[i] = float64(sum) * float64(columns[i%cols]) * float64(perRow[i/cols])
	}
	input(m, 0, a)
	input(m, 1, b)
	output(m, 2, zeros(len(want)), want, 0, 1, f32)
	m.uints(3, rows, cols, k)
	input(m, 8, columns)
	input(m, 9, perRow)
	m.uints(10, 1)
	return D2((cols+31)/32, (rows+31)/32), D1(64)
}
