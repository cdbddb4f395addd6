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

var (
	selError        = objc.RegisterName("error")
	selUserInfo     = objc.RegisterName("userInfo")
	selObjectForKey = objc.RegisterName("objectForKey:")
)

// encoderInfoKey is the text of the constant MTLCommandBufferEncoderInfoErrorKey. Foundation names such keys after
// themselves; should this one differ, the list of encoders stays empty.
const encoderInfoKey = "MTLCommandBufferEncoderInfoErrorKey"

// commandBufferError is what a failed command buffer says.
func commandBufferError(cb mtl.CommandBuffer, seq uint64) *Error {
	defer objc.NewPool().Drain()
	e := deviceError("command buffer", cb.Error())
	e.Encoders = encoderInfos(objc.ID(objc.Send(cb.ID(), selError)))
	return &Error{Func: "Submission", Have: fmt.Sprintf("submission %d, which failed", seq), Err: e}
}

// encoderInfos says how far each encoder came.
func encoderInfos(nsError objc.ID) []string {
	if !nsError.RespondsTo(selUserInfo) {
		return nil
	}
	info := objc.ID(objc.Send(nsError, selUserInfo))
	if !info.RespondsTo(selObjectForKey) {
		return nil
	}
	key := objc.NSString(encoderInfoKey)
	defer key.Release()
	var list []string
	infos := mtl.ArrayOf(objc.ID(objc.Send(info, selObjectForKey, uintptr(key))))
	for i := range infos.Len() {
		x := mtl.CommandBufferEncoderInfoOf(infos.At(i).ID())
		name := x.Label()
		if name == "" {
			name = fmt.Sprintf("encoder %d", i)
		}
		list = append(list, name+" "+encoderState(x.ErrorState()))
	}
	return list
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
