// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	kjson "sigs.k8s.io/json"

	"muster.dev/muster/internal/image/imagestore"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/node/bootreport"
)

const (
	// prefix begins the path of every operation.
	prefix = "/v1/"
	// maxRequest bounds a request, in bytes: the largest is a launch, whose user data has [machine.MaxUserData] and grows
	// by a third on the wire.
	maxRequest = 64 << 10
	// maxAnswer bounds an answer, in bytes: the largest lists all images of a host (ten thousand).
	maxAnswer = 32 << 20
	// patience bounds an operation. A launch makes a disk, boots for half a minute and may wait for another of the same
	// machine.
	patience = 2 * time.Minute
	// contentType is that of requests, answers and faults.
	contentType = "application/json"
	// upgrade names the protocol after a dial: bytes as they come, both ways.
	upgrade = "muster-stream"
	// dialing is the operation whose answer is a connection.
	dialing = "dial"
	// listening is the operation whose answer is names of connections, and accepting the one that takes such a connection.
	listening, accepting = "listen", "accept"
	// loading is the operation whose request is a header, loadHeader, with an archive behind it.
	loading     = "load"
	loadHeader  = "Muster-Load"
	archiveType = "application/octet-stream"
	// maxArchive bounds an archive of images, in bytes.
	maxArchive = 16 << 30
)

// operation is one thing that is asked of a host: its name on the wire, and the method of a Host.
type operation[Q request, A any] struct {
	name string
	do   func(Host, context.Context, Q) (A, error)
}

// nothing is the answer of an operation without an answer.
type nothing struct{}

func launching() operation[Launch, machine.Instance] {
	return operation[Launch, machine.Instance]{"launch", Host.Launch}
}

func getting() operation[Machine, machine.Instance] {
	return operation[Machine, machine.Instance]{"get", Host.Get}
}

func listing() operation[List, []machine.Instance] {
	return operation[List, []machine.Instance]{"list", Host.List}
}

// silent is an operation without an answer.
func silent[Q request](name string, do func(Host, context.Context, Q) error) operation[Q, nothing] {
	return operation[Q, nothing]{name, func(h Host, ctx context.Context, ask Q) (nothing, error) {
		return nothing{}, do(h, ctx, ask)
	}}
}

func stopping() operation[Machine, nothing] { return silent("stop", Host.Stop) }

func terminating() operation[Machine, nothing] { return silent("terminate", Host.Terminate) }

func reporting() operation[Machine, *bootreport.Report] {
	return operation[Machine, *bootreport.Report]{"report", Host.Report}
}

func mounting() operation[Mount, nothing] { return silent("mount", Host.Mount) }

func lookingAtMount() operation[Mount, bool] {
	return operation[Mount, bool]{"mounted", Host.Mounted}
}

func booting() operation[Machine, string] { return operation[Machine, string]{"boot", Host.Boot} }

func unmounting() operation[Unmount, nothing] { return silent("unmount", Host.Unmount) }

func lookingForWriters() operation[Volume, []string] {
	return operation[Volume, []string]{"writers", Host.Writers}
}

func resizing() operation[Volume, nothing] { return silent("resize", Host.Resize) }

func sweeping() operation[Sweep, nothing] { return silent("sweep", Host.Sweep) }

func unloading() operation[Unload, nothing] { return silent("unload", Host.Unload) }

func listingImages() operation[Images, []imagestore.Entry] {
	return operation[Images, []imagestore.Entry]{"images", func(h Host, ctx context.Context, _ Images) ([]imagestore.Entry, error) {
		return h.Images(ctx)
	}}
}

func lookingAtShown() operation[Shown, []string] {
	return operation[Shown, []string]{"shown", Host.Shown}
}

// decode reads a request. Fields that are unknown or there twice are refused, since a host that ignores a field does
// something else than it is asked to.
func decode[Q request](raw []byte) (Q, error) {
	var ask Q
	strict, err := kjson.UnmarshalStrict(raw, &ask)
	if err = errors.Join(append(strict, err)...); err != nil {
		return ask, fmt.Errorf("reading the request: %w", err)
	}
	return ask, ask.validate()
}

// encode writes a request, an answer or a fault.
func encode(value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", value, err)
	}
	return raw, nil
}
