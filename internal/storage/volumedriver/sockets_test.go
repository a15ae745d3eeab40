// SPDX-License-Identifier: Apache-2.0

package volumedriver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Each machine of the cluster that runs is answered by its own sockets, again after a reboot, and no longer than it is
// there.
func TestSockets(t *testing.T) {
	const other = "i-0123456789abcdef1" // of another cluster
	w := newWorld(t)
	for id, cluster := range map[string]string{machineID: clusterName, other: "green"} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, Provider: v1alpha1.ProviderLocal}}
		m.Status.NodeName = nodeName
		if err := w.management.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.machines.boots[id] = "1"
	}
	d, err := New(Config{
		ClusterName: clusterName, Inventory: w.management, Management: w.management, Cluster: w.node.cluster, Snapshots: snapshotObjects(), Machines: w.machines, Mounts: w.controller.mounts,
		Files: w.files, DefaultFileSystem: defaultID, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	all, said := map[string]*answering{}, map[string]string{}
	look := func() { // and wait until each machine has its sockets, or an error
		t.Helper()
		d.look(t.Context(), all, said, &usages{})
		for _, one := range all {
			if err := <-one.begun; err != nil {
				one.begun <- err
			}
		}
	}
	w.machines.failure = errors.New("it is booting")
	look()
	look() // hears of it
	if len(all) != 0 || said[machineID] == "" {
		t.Errorf("while it boots: %v, said %v", all, said)
	}
	w.machines.failure = nil
	look()
	if len(all) != 1 || all[machineID] == nil {
		t.Fatalf("answering %v", all)
	}
	first := all[machineID]
	look()
	if all[machineID] != first {
		t.Error("it began anew for nothing")
	}
	connect := func(socket string) *grpc.ClientConn {
		t.Helper()
		connection, err := grpc.NewClient("unix:"+filepath.Join(w.machines.dir, "f0", filepath.Base(socket)), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	info, err := registration.NewRegistrationClient(connect(registerSocket)).GetInfo(ctx, &registration.InfoRequest{})
	if err != nil || info.GetName() != "efs.csi.aws.com" || info.GetType() != "CSIPlugin" || info.GetEndpoint() != driverSocket {
		t.Errorf("%v, %v", info, err)
	}
	who, err := csi.NewNodeClient(connect(driverSocket)).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil || who.GetNodeId() != machineID {
		t.Errorf("%v, %v", who, err)
	}
	for n := range maxConnections { // the client above has one
		patience := 10 * time.Second
		if n == maxConnections-1 {
			patience = 50 * time.Millisecond
		}
		if got := isServed(t, filepath.Join(w.machines.dir, "f0", filepath.Base(registerSocket)), patience); got != (n < maxConnections-1) {
			t.Fatalf("connection %d of a machine: served %t", n+2, got)
		}
	}
	w.machines.boots[machineID] = "2"
	look()
	if all[machineID] == first {
		t.Error("it was not begun anew after a reboot")
	}
	delete(w.machines.boots, machineID)
	look()
	if len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// A machine that hangs while it is to have its sockets delays no other.
func TestListenHangs(t *testing.T) {
	const hanging = "i-0123456789abcdeaa"
	w := newWorld(t)
	w.machines.listen = map[string]chan struct{}{hanging: make(chan struct{})}
	defer close(w.machines.listen[hanging])
	for _, id := range []string{hanging, machineID} {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.MachineSpec{ClusterName: clusterName, Provider: v1alpha1.ProviderLocal}}
		m.Status.NodeName = nodeName
		if err := w.management.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.machines.boots[id] = "1"
	}
	d, err := New(Config{
		ClusterName: clusterName, Inventory: w.management, Management: w.management, Cluster: w.node.cluster, Snapshots: snapshotObjects(), Machines: w.machines, Mounts: w.controller.mounts,
		Files: w.files, DefaultFileSystem: defaultID, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	all, said := map[string]*answering{}, map[string]string{}
	d.look(t.Context(), all, said, &usages{})
	if err := <-all[machineID].begun; err != nil {
		t.Fatal(err)
	}
	if !isServed(t, filepath.Join(w.machines.dir, "f0", filepath.Base(registerSocket)), 10*time.Second) {
		t.Error("the other machine is not answered")
	}
	w.machines.boots = nil
	d.look(t.Context(), all, said, &usages{}) // which waits for no machine either
	if len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

// A machine that asks without end, or says much, does not fill the log.
func TestFloodOfAMachine(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	d, err := New(Config{
		ClusterName: clusterName, Inventory: w.management, Management: w.management, Cluster: w.node.cluster, Snapshots: snapshotObjects(), Machines: w.machines, Mounts: w.controller.mounts,
		Files: w.files, DefaultFileSystem: defaultID, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	node := d.node(machineID, nodeName, &usages{})
	kubelet := registrar{machine: machineID, log: node.log}
	if _, err := kubelet.NotifyRegistrationStatus(t.Context(), &registration.RegistrationStatus{Error: strings.Repeat("x", 10*maxReason)}); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 2*maxReason {
		t.Errorf("%d bytes for one line", log.Len())
	}
	const requests = 1000
	for range requests {
		if _, err := node.NodePublishVolume(t.Context(), publish(own+"::fsap-00000000000000009", "/var/lib/kubelet/here")); status.Code(err) != codes.PermissionDenied {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > requests/2 {
		t.Errorf("%d lines", lines)
	}
}

// isServed reports whether gRPC says something on a new connection, which is kept. A server does so at once when the
// client has begun.
func isServed(t *testing.T, socket string, patience time.Duration) bool {
	t.Helper()
	connection, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if _, err := connection.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, _ := connection.Read(make([]byte, 1))
	return n == 1
}
