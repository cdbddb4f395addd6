package runtime

import "context"

// A Submission is work that was committed. It is a small value to be copied; the zero Submission, which stands for no
// work, has completed.
type Submission struct {
	rt    *Runtime
	seq   uint64
	times *gpuTimes // its own, see WithGPUTimes
}

// Wait waits until the work has completed, and returns its error. It ends early with an error over [ErrTimeout] and
// the context's error when ctx is done; the work goes on then. A device that makes no progress for the time of
// [WithTimeout] is given up, so Wait ends even without a deadline. A nil ctx is like context.Background.
func (s Submission) Wait(ctx context.Context) error {
	if s.rt == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	return s.rt.queue.wait(ctx, "Submission.Wait", s.seq)
}

// Done says whether the work has completed, well or not.
func (s Submission) Done() bool { return s.rt == nil || s.rt.queue.passed(s.seq) }

// Err is the error of completed work, and nil while it is pending. Work that follows a failure in the same order (that of
// the runtime, or that of a [Stream]) has an error too, as has work that used memory which failed work wrote, since nothing
// can be said about what it read.
func (s Submission) Err() error {
	if !s.Done() || s.rt == nil {
		return nil
	}
	if e := s.rt.queue.result(s.seq); e != nil {
		return e
	}
	return nil
}
