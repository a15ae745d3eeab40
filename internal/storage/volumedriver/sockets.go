// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// lookInterval is how often it is looked which machines run.
	lookInterval = time.Second
	// maxRequest is how large a request of a kubelet may be, in bytes.
	maxRequest = 64 << 10
	// maxConnections is how many connections one socket has: a kubelet has two. Everything that is root on a machine
	// may connect, and each takes a file descriptor of the process that serves all clusters.
	maxConnections = 16
	// maxStreams is how many requests of one connection are answered at a time.
	maxStreams = 32
)

// answer answers the kubelets of all machines of the cluster that run until the context ends.
func (d *Driver) answer(ctx context.Context) {
	all := map[string]*answering{}
	defer func() {
		for _, one := range all {
			one.stop()
		}
	}()
	said := map[string]string{}
	counted := &usages{}
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		d.look(ctx, all, said, counted)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look begins with machines that have booted, and ends with those that are gone. It waits for no machine.
func (d *Driver) look(ctx context.Context, all map[string]*answering, said map[string]string, counted *usages) {
	list := &v1alpha1.MachineList{}
	if err := d.Inventory.List(ctx, list); err != nil {
		if ctx.Err() == nil {
			d.Log.WarnContext(ctx, "volumes are not offered to new machines", "error", err)
		}
		return
	}
	wanted := map[string]bool{}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.ClusterName != d.ClusterName || !m.Spec.Provider.Can(v1alpha1.MountVolumes) || m.Status.NodeName == "" {
			continue
		}
		boot, running := d.Machines.Boot(m.Name)
		if !running {
			continue
		}
		wanted[m.Name] = true
		if one, ok := all[m.Name]; ok {
			err := one.failed()
			if err == nil && one.boot == boot && one.node == m.Status.NodeName {
				continue
			}
			one.stop()
			delete(all, m.Name)
			if err != nil {
				if said[m.Name] != err.Error() { // it is still booting, mostly
					d.Log.WarnContext(ctx, "volumes are not offered to a machine yet", "machine", m.Name, "error", err)
					said[m.Name] = err.Error()
				}
				continue
			}
		}
		all[m.Name] = d.begin(m.Name, m.Status.NodeName, boot, counted)
	}
	for id, one := range all {
		if !wanted[id] {
			one.stop()
			delete(all, id)
		}
	}
	maps.DeleteFunc(said, func(id, _ string) bool { return !wanted[id] })
}

// answering is what answers one boot of a machine.
type answering struct {
	boot, node       string
	driver, register *grpc.Server
	begun            chan error // why the machine does not have its sockets; closed when it has them
}

// begin makes the sockets of a machine, for which the machine may hang, and answers there until stop is called. The
// socket by which the kubelet hears of the driver comes last.
func (d *Driver) begin(machine, name, boot string, counted *usages) *answering {
	one := &answering{boot: boot, node: name, driver: newServer(), register: newServer(), begun: make(chan error, 1)}
	csi.RegisterIdentityServer(one.driver, d.Identity())
	node := d.node(machine, name, counted)
	csi.RegisterNodeServer(one.driver, node)
	registration.RegisterRegistrationServer(one.register, registrar{machine: machine, log: node.log})
	go func() {
		for _, at := range []struct {
			server *grpc.Server
			socket string
		}{{one.driver, driverSocket}, {one.register, registerSocket}} {
			listener, err := d.Machines.Listen(machine, at.socket)
			if err != nil {
				one.begun <- fmt.Errorf("offering volumes: %w", err)
				return
			}
			go func() { _ = at.server.Serve(netutil.LimitListener(listener, maxConnections)) }() // which ends when the server is stopped, or was
		}
		close(one.begun)
	}()
	return one
}

// failed says, once, why the machine does not have its sockets; nil if it has them, or may have them soon.
func (a *answering) failed() error {
	select {
	case err := <-a.begun:
		return err
	default:
		return nil
	}
}

// stop ends what is answered, and does not wait for a machine that hangs.
func (a *answering) stop() {
	a.driver.Stop()
	a.register.Stop()
}

func newServer() *grpc.Server {
	return grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(10*time.Second))
}
