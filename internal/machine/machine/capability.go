// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"net"
	"os"

	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/platform/loopdevice"
)

// Reporter is a Provider whose machines keep logs ([v1alpha1.KeepLogs]) and report what keeps them from becoming nodes.
// Root on an instance writes the report: it is for people, and what it says is believed only in so far as the instance
// is not well.
type Reporter interface {
	// Report returns what the instance reports; false if it reports nothing.
	Report(id string) (bootreport.Report, bool)
}

// Dialer is a Provider whose machines are in a network ([v1alpha1.JoinNetwork]). It reaches what an instance serves to
// itself alone, such as on lo.
type Dialer interface {
	// DialInside connects from the inside of an instance. The address is an IP address with a port.
	DialInside(ctx context.Context, id, network, address string) (net.Conn, error)
}

// Booter is a Provider whose machines have processes that a shell enters ([v1alpha1.OpenShell]).
type Booter interface {
	// Boot names the boot of a machine that runs: it is another one after each reboot. False if it does not run.
	Boot(id string) (string, bool)
}

// Mounter is a Provider whose machines mount what the host has ([v1alpha1.MountVolumes]).
type Mounter interface {
	// Mount shows a directory or a block device of the host at a path of the machine's. Repeated calls make one mount.
	Mount(id string, source *os.File, target string, readOnly bool) error
	// Mounted reports whether the directory or device is mounted there.
	Mounted(id string, source *os.File, target string) (bool, error)
	// Unmount removes the mount, and the directory or file that it was mounted at. It is not an error if nothing is
	// mounted.
	Unmount(id, target string) error
}

// Attacher is a Provider whose machines have their files as block devices ([v1alpha1.AttachBlocks]).
type Attacher interface {
	// Loops are the devices of a machine.
	Loops(id string) ([]loopdevice.Device, error)
	// AttachLoop makes a file that the machine has opened a device of it.
	AttachLoop(id string, file *os.File, readOnly bool) (loopdevice.Device, error)
	// DetachLoop takes the file from one of the machine's devices.
	DetachLoop(id string, number int) error
	// ResizeLoop lets one of them have the size that its file has by now.
	ResizeLoop(id string, number int) error
}

// Driller is a Provider whose machines run pods ([v1alpha1.RunPods]) and can be in trouble on purpose.
type Driller interface {
	// Drill has a machine have an effect, and no earlier one: the zero effect ends all. Repeated calls change nothing. What
	// needs a machine that runs is done for one that does, and again when it has booted.
	Drill(ctx context.Context, id string, effect drill.Effect) error
}

// DiskKeeper is a Provider whose machines run pods ([v1alpha1.RunPods]) on disks of this host.
type DiskKeeper interface {
	// KeepReserve stops machines whose disks take the room that the host needs itself, until the context ends.
	KeepReserve(ctx context.Context) error
}
