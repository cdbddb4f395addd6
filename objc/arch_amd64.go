package objc

var thisArch = amd64
