package runtime

import (
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// deviceError is a failure that Metal reported as err.
func deviceError(op string, err error) *DeviceError {
	switch e := err.(type) {
	case *objc.Error:
		return &DeviceError{Op: op, Domain: e.Domain, Code: e.Code, Text: strings.TrimSpace(e.Description)}
	case *DeviceError:
		return &DeviceError{Op: op, Domain: e.Domain, Code: e.Code, Text: e.Text, Encoders: e.Encoders}
	case nil:
		return &DeviceError{Op: op}
	}
	return &DeviceError{Op: op, Text: err.Error()}
}

// commandBufferError is what a failed command buffer says.
func commandBufferError(cb mtl.CommandBuffer, seq uint64) *Error {
	e := deviceError("command buffer", cb.Error())
	for i, x := range cb.EncoderInfos() {
		if x.Label == "" {
			x.Label = fmt.Sprintf("encoder %d", i)
		}
		e.Encoders = append(e.Encoders, x.Label+" "+encoderState(x.State))
	}
	return &Error{Func: "Submission", Have: fmt.Sprintf("submission %d, which failed", seq), Err: e}
}

func encoderState(s mtl.CommandEncoderErrorState) string {
	switch s {
	case mtl.CommandEncoderErrorStateCompleted:
		return "completed"
	case mtl.CommandEncoderErrorStateAffected:
		return "affected by another"
	case mtl.CommandEncoderErrorStatePending:
		return "pending"
	case mtl.CommandEncoderErrorStateFaulted:
		return "faulted"
	}
	return "in an unknown state"
}
