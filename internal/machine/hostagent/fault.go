// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/storage/volumemount"
)

// fault is an error of a host as it goes over the wire.
type fault struct {
	// Kind names the sentinel that the error wraps; empty for every other error.
	Kind string `json:"kind,omitempty"`
	// Message is the text of the error.
	Message string `json:"message"`
	// Cannot says what machines of which provider cannot do, if that is the error.
	Cannot *machine.CannotError `json:"cannot,omitempty"`
}

// maxMessage bounds the text of an error, in bytes, and maxFault the fault, in which JSON has six bytes for some of one.
const (
	maxMessage = 8 << 10
	maxFault   = 6*maxMessage + 1<<10
)

// sentinels are the errors that callers look for. A wrapper comes before what it wraps.
var sentinels = []struct {
	kind string
	is   error
}{
	{"NotFound", machine.ErrNotFound},
	{"Damaged", machine.ErrDamaged},
	{"PodsFull", machine.ErrPodsFull},
	{"SubnetFull", machine.ErrSubnetFull},
	{"DiskReserve", machine.ErrDiskReserve},
	{"ConnectionRefused", syscall.ECONNREFUSED},
	{"NotAlone", volumemount.ErrNotAlone},
	{"OtherImages", ErrOtherImages},
	{"NoFile", fs.ErrNotExist},
}

// faultOf is an error for the wire.
func faultOf(err error) fault {
	f := fault{Message: shorten(err.Error())}
	if cannot, ok := errors.AsType[machine.CannotError](err); ok {
		f.Cannot = &cannot
		return f
	}
	for _, s := range sentinels {
		if errors.Is(err, s.is) {
			f.Kind = s.kind
			break
		}
	}
	return f
}

// err is the error of a fault. A kind that is not known here is that of an error without a sentinel.
func (f fault) err() error {
	r := &remoteError{message: shorten(f.Message)}
	if f.Cannot != nil {
		r.is = *f.Cannot
		return r
	}
	for _, s := range sentinels {
		if s.kind == f.Kind {
			r.is = s.is
		}
	}
	return r
}

func shorten(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}

// remoteError has the text of an error on another host, and wraps the same sentinel.
type remoteError struct {
	message string
	is      error
}

func (e *remoteError) Error() string { return e.message }

func (e *remoteError) Unwrap() error { return e.is }
