// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"fmt"
	"net"
	"sync"
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

// look begins with machines that have booted, and ends with those that are gone.
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
			if one.boot == boot && one.node == m.Status.NodeName {
				continue
			}
			one.stop()
			delete(all, m.Name)
		}
		one, err := d.begin(m.Name, m.Status.NodeName, boot, counted)
		if err != nil {
			if said[m.Name] != err.Error() { // it is still booting, mostly
				d.Log.WarnContext(ctx, "volumes are not offered to a machine yet", "machine", m.Name, "error", err)
				said[m.Name] = err.Error()
			}
			continue
		}
		delete(said, m.Name)
		all[m.Name] = one
	}
	for id, one := range all {
		if !wanted[id] {
			one.stop()
			delete(all, id)
			delete(said, id)
		}
	}
}

// answering is what answers one boot of a machine.
type answering struct {
	boot, node string
	servers    []*grpc.Server
	ended      sync.WaitGroup
}

// begin makes the sockets of a machine. The one by which the kubelet hears of the driver comes last.
func (d *Driver) begin(machine, name, boot string, counted *usages) (*answering, error) {
	driver, register := newServer(), newServer()
	csi.RegisterIdentityServer(driver, d.Identity())
	csi.RegisterNodeServer(driver, d.node(machine, name, counted))
	registration.RegisterRegistrationServer(register, registrar{machine: machine, log: d.Log})
	one := &answering{boot: boot, node: name}
	for _, at := range []struct {
		server *grpc.Server
		socket string
	}{{driver, driverSocket}, {register, registerSocket}} {
		listener, err := d.Machines.Listen(machine, at.socket)
		if err != nil {
			one.stop()
			return nil, fmt.Errorf("offering volumes: %w", err)
		}
		one.serve(at.server, netutil.LimitListener(listener, maxConnections))
	}
	return one, nil
}

func newServer() *grpc.Server {
	return grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(10*time.Second))
}

func (a *answering) serve(server *grpc.Server, listener net.Listener) {
	a.servers = append(a.servers, server)
	a.ended.Go(func() { _ = server.Serve(listener) }) // which ends when the server is stopped
}

func (a *answering) stop() {
	for _, server := range a.servers {
		server.Stop()
	}
	a.ended.Wait()
}
