package runtime

import "fmt"

// A Section is a stretch of a program's commands that was named as it was recorded.
type Section struct {
	Name string
	// First is the section's first command, End the one after its last.
	First, End int
}

// Section begins a section of the program that is being recorded: it ends where the next one begins, or the pass does. In
// work that is not recorded it does nothing.
func (p *Pass) Section(name string) error {
	if !p.live() {
		return &Error{Func: "Pass.Section", Arg: fmt.Sprintf("%q", name), Have: "a pass that is over", Need: "a pass that is being encoded", Err: ErrMisuse}
	}
	if p.st.recording {
		p.st.sections = append(p.st.sections, Section{Name: name, First: p.st.count})
	}
	return nil
}

// endSections sets the ends of sections that cover commands up to end.
func endSections(sections []Section, end int) []Section {
	for i := len(sections) - 1; i >= 0; i-- {
		sections[i].End = end
		end = sections[i].First
	}
	return sections
}

// Sections are the program's sections in the order of recording. Names may occur more than once.
func (prog *Program) Sections() []Section {
	if prog == nil {
		return nil
	}
	return append([]Section(nil), prog.sections...)
}

// Section is the range of the first section of that name, for [Program.ReplayRange], which refuses what this returns
// when there is none: -1, -1.
func (prog *Program) Section(name string) (i, j int) {
	if prog != nil {
		for _, s := range prog.sections {
			if s.Name == name {
				return s.First, s.End
			}
		}
	}
	return -1, -1
}
