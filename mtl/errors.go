package mtl

import (
	"github.com/ingot-metal/ingot/objc"
)

// Domains of the errors that Metal reports: objc.Error.Domain. The codes are [CommandBufferError], [LibraryError] and so on.
const (
	CommandBufferErrorDomain = "MTLCommandBufferErrorDomain"
	LibraryErrorDomain       = "MTLLibraryErrorDomain"
	CaptureErrorDomain       = "MTLCaptureErrorDomain"
	CounterErrorDomain       = "MTLCounterErrorDomain"
)

// commandBufferEncoderInfoErrorKey is the key under which a command buffer's error tells of its encoders.
const commandBufferEncoderInfoErrorKey = "MTLCommandBufferEncoderInfoErrorKey"

var (
	msgErrorObject  = objc.NewMessage("error", "@@:")
	msgUserInfo     = objc.NewMessage("userInfo", "@@:")
	msgObjectForKey = objc.NewMessage("objectForKey:", "@@:@")
)

// EncoderInfo tells how an encoder of a failed command buffer fared.
type EncoderInfo struct {
	Label     string
	State     CommandEncoderErrorState
	Signposts []string
}

// EncoderInfos are what the error of a command buffer tells of its encoders, in their order. There is something to tell
// when the command buffer failed and was made with the option CommandBufferErrorOptionEncoderExecutionStatus.
func (x CommandBuffer) EncoderInfos() []EncoderInfo {
	if x.IsNil() {
		return nil
	}
	defer objc.NewPool().Drain()
	info := objc.ID(msgUserInfo.Send(objc.ID(msgErrorObject.Send(x.id))))
	if info == 0 {
		return nil
	}
	var key objc.ID
	if info.IsGo() {
		key = objc.NSString(commandBufferEncoderInfoErrorKey).Autorelease()
	} else {
		var err error
		if key, err = objc.Constant(objc.Metal, commandBufferEncoderInfoErrorKey); err != nil {
			return nil
		}
	}
	var list []EncoderInfo
	for _, id := range objc.ArrayIDs(objc.ID(msgObjectForKey.Send(info, uintptr(key)))) {
		e := CommandBufferEncoderInfoOf(id)
		list = append(list, EncoderInfo{e.Label(), e.ErrorState(), e.DebugSignposts().Strings()})
	}
	return list
}
