package nn

import "github.com/ingot-metal/ingot/runtime"

// fitThreads is threads, a number of whole simdgroups, or the most whole simdgroups that the launch's pipeline allows on this
// device if that is less. Where it allows none, or cannot be had, Dispatch says so.
func fitThreads(l *runtime.Launch, threads int) int {
	if most := l.MaxThreads() / SIMDWidth * SIMDWidth; most > 0 && most < threads {
		return most
	}
	return threads
}

// dispatchRows launches threadgroups that reduce rows of n elements, with RowThreads threads each.
func dispatchRows(l *runtime.Launch, groups, n int) error {
	return dispatchGroups(l, groups, RowThreads(n))
}

// dispatchGroups launches threadgroups of that many threads, or of fewer where the kernel's pipeline allows no more on this
// device: the kernels take any number of whole simdgroups.
func dispatchGroups(l *runtime.Launch, groups, threads int) error {
	return dispatchSimdgroups(l, runtime.D1(groups), threads)
}

// dispatchSimdgroups is dispatchGroups for a grid of more dimensions.
func dispatchSimdgroups(l *runtime.Launch, groups runtime.Size, threads int) error {
	return l.Dispatch(groups, runtime.D1(fitThreads(l, threads)))
}

// dispatchElements launches a thread for each of n elements, ElementThreads to a threadgroup, or fewer where the kernel's
// pipeline allows no more on this device.
func dispatchElements(l *runtime.Launch, n int) error {
	threads := fitThreads(l, ElementThreads)
	return l.Dispatch(runtime.D1(ceilDiv(n, threads)), runtime.D1(threads))
}

// grid is the geometry of a launch.
type grid struct{ groups, threads runtime.Size }

// prepared is a launch that has everything but its dispatch.
type prepared struct {
	launch *runtime.Launch
	grid   grid
}

func (p prepared) dispatch() error { return p.launch.Dispatch(p.grid.groups, p.grid.threads) }

// check is dispatch without encoding anything.
func (p prepared) check() error { return p.launch.Check(p.grid.groups, p.grid.threads) }

// dispatchAll encodes several launches of their own ([runtime.Pass.NewLaunch]), or none if one of them is refused.
func dispatchAll(launches ...prepared) error {
	for _, l := range launches {
		if err := l.check(); err != nil {
			return err
		}
	}
	for _, l := range launches {
		if err := l.dispatch(); err != nil {
			return err
		}
	}
	return nil
}
