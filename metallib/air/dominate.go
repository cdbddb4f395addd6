package air

// A flow is the control flow of a function: who follows whom, and which blocks dominate which.
type flow struct {
	index map[*Block]int
	preds [][]int // one entry per edge
	// idom is the immediate dominator by block, -1 for the entry and for blocks that are never reached.
	idom []int
	// enter and leave number the blocks of the dominator tree on the way down and up; 0 for blocks never reached.
	enter, leave []int
}

// newFlow works out the control flow of f, whose blocks all end in terminators that branch within f.
func newFlow(f *Function) *flow {
	n := len(f.Blocks)
	c := &flow{index: make(map[*Block]int, n), preds: make([][]int, n), idom: make([]int, n), enter: make([]int, n), leave: make([]int, n)}
	for i, b := range f.Blocks {
		c.index[b] = i
	}
	for i, b := range f.Blocks {
		for _, s := range b.Terminator().Blocks {
			j := c.index[s]
			c.preds[j] = append(c.preds[j], i)
		}
	}
	c.dominators(f)
	return c
}

// dominators finds the immediate dominators with the iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast
// Dominance Algorithm", 2001), and numbers the tree.
func (c *flow) dominators(f *Function) {
	order := c.postorder(f)
	number := make([]int, len(f.Blocks)) // place in postorder plus one, 0 if never reached
	for i, b := range order {
		number[b] = i + 1
	}
	for i := range c.idom {
		c.idom[i] = -1
	}
	c.idom[0] = 0
	for changed := true; changed; {
		changed = false
		for i := len(order) - 2; i >= 0; i-- {
			b := order[i]
			best := -1
			for _, p := range c.preds[b] {
				if number[p] == 0 || c.idom[p] < 0 {
					continue
				}
				if best < 0 {
					best = p
					continue
				}
				for x := p; x != best; {
					for number[x] < number[best] {
						x = c.idom[x]
					}
					for number[best] < number[x] {
						best = c.idom[best]
					}
				}
			}
			if c.idom[b] != best {
				c.idom[b] = best
				changed = true
			}
		}
	}
	children := make([][]int, len(f.Blocks))
	for _, b := range order {
		if b != 0 {
			children[c.idom[b]] = append(children[c.idom[b]], b)
		}
	}
	type step struct{ block, child int }
	clock := 1
	c.enter[0] = clock
	for stack := []step{{0, 0}}; len(stack) > 0; {
		s := &stack[len(stack)-1]
		clock++
		if s.child < len(children[s.block]) {
			b := children[s.block][s.child]
			s.child++
			c.enter[b] = clock
			stack = append(stack, step{b, 0})
			continue
		}
		c.leave[s.block] = clock
		stack = stack[:len(stack)-1]
	}
	c.idom[0] = -1
}

// postorder lists the blocks that can be reached, each after those that follow it.
func (c *flow) postorder(f *Function) []int {
	type step struct{ block, next int }
	seen := make([]bool, len(f.Blocks))
	seen[0] = true
	var order []int
	for stack := []step{{0, 0}}; len(stack) > 0; {
		s := &stack[len(stack)-1]
		targets := f.Blocks[s.block].Terminator().Blocks
		if s.next < len(targets) {
			t := c.index[targets[s.next]]
			s.next++
			if !seen[t] {
				seen[t] = true
				stack = append(stack, step{t, 0})
			}
			continue
		}
		order = append(order, s.block)
		stack = stack[:len(stack)-1]
	}
	return order
}

// reached tells whether control can come to block b.
func (c *flow) reached(b int) bool { return c.enter[b] != 0 }

// dominates tells whether all ways to block b, which is reached, lead through block a.
func (c *flow) dominates(a, b int) bool {
	return c.enter[a] != 0 && c.enter[a] <= c.enter[b] && c.leave[b] <= c.leave[a]
}
