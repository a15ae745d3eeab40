// SPDX-License-Identifier: Apache-2.0

// Package hostagenttest is the suite that every [hostagent.Host] passes, however it is reached.
package hostagenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
	"muster.dev/muster/internal/machine/hostagent"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/fake"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/node/bootreport"
)

// Reach returns a Host by which the host of this process is asked.
type Reach func(*testing.T, hostagent.Host) hostagent.Host

// Run runs the suite. It needs no root: beneath are machines in memory and simulated ones.
func Run(t *testing.T, reach Reach) {
	t.Helper()
	t.Run("SimulatedMachines", func(t *testing.T) { simulatedMachines(t, reach) })
	t.Run("MachinesInMemory", func(t *testing.T) { machinesInMemory(t, reach) })
	for name, test := range map[string]func(*testing.T, Reach){
		"RequestsArriveWhole":      requestsArriveWhole,
		"ErrorsKeepTheirIdentity":  errorsKeepTheirIdentity,
		"UnknownProvidersAreNamed": unknownProviders,
		"ReportsArriveOrAreNone":   reports,
		"ConnectionsGoInside":      connections,
		"RefusedConnections":       refusedConnections,
		"MachinesThatCannot":       machinesThatCannot,
		"CallersThatGoAway":        callersThatGoAway,
		"VolumesAreMounted":        volumesAreMounted,
		"MountsAreRefused":         mountsAreRefused,
		"MountsArriveWhole":        mountsArriveWhole,
		"MachinesAreAnswered":      machinesAreAnswered,
		"ListenersEnd":             listenersEnd,
		"DrillsArriveWhole":        drillsArriveWhole,
		"ImagesAreLoaded":          imagesAreLoaded,
		"ArchivesAreRefused":       archivesAreRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, reach) })
	}
}

// simulatedMachines runs the suite of all providers, whose records are on disk.
func simulatedMachines(t *testing.T, reach Reach) {
	const name = v1alpha1.ProviderSimulated
	machinetest.Run(t, name, []byte("told"), func(t *testing.T) machinetest.Factory {
		t.Helper()
		dir := t.TempDir()
		return func(t *testing.T) machine.Provider {
			t.Helper()
			store, err := machine.NewStore(machine.StoreConfig{Dir: dir, Subnets: machinetest.Subnets, Region: machinetest.Region()})
			if err != nil {
				t.Fatal(err)
			}
			p, err := simulated.New(simulated.Config{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			return through(t, reach, name, p)
		}
	})
}

func machinesInMemory(t *testing.T, reach Reach) {
	machinetest.Run(t, fake.Name, []byte("told"), func(t *testing.T) machinetest.Factory {
		t.Helper()
		p := newFake(t)
		return func(t *testing.T) machine.Provider { t.Helper(); return through(t, reach, fake.Name, p) }
	})
}

// through is a provider whose machines are those of another one, behind the door.
func through(t *testing.T, reach Reach, name v1alpha1.Provider, p machine.Provider) machine.Provider {
	t.Helper()
	return hostagent.Providers(reach(t, hostagent.New(hostagent.Config{Providers: machine.Providers{name: p}})), name)[name]
}

func newFake(t *testing.T) *fake.Provider {
	t.Helper()
	subnets, err := machinetest.Subnets()
	if err != nil {
		t.Fatal(err)
	}
	return fake.New(fake.Config{Subnet: subnets[0], Region: machinetest.Region()})
}

// able names a provider whose machines can do everything.
func able() v1alpha1.Provider { return v1alpha1.ProvidersThat(v1alpha1.RunPods)[0] }

// machines are in memory and can do what is done by the door.
type machines struct {
	*fake.Provider
	launched machine.LaunchRequest
	report   *bootreport.Report
	dialed   string
	launch   func(context.Context) error
	mounted  map[string]mounted // by machine and target
	failure  error
	socket   string // of this host, in place of the machine's
	effect   drill.Effect
}

func (m *machines) Launch(ctx context.Context, request machine.LaunchRequest) (machine.Instance, error) {
	m.launched = request
	if m.launch != nil {
		return machine.Instance{}, m.launch(ctx)
	}
	request.Pods = 0
	return m.Provider.Launch(ctx, request)
}

func (m *machines) Report(id string) (bootreport.Report, bool) {
	if m.report == nil || id != machinetest.First {
		return bootreport.Report{}, false
	}
	return *m.report, true
}

func (m *machines) DialInside(ctx context.Context, id, network, address string) (net.Conn, error) {
	m.dialed = id
	connection, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("inside: %w", err)
	}
	return connection, nil
}

// newHost has machines in memory that can do everything.
func newHost(t *testing.T, reach Reach) (hostagent.Host, *machines) {
	t.Helper()
	m := &machines{Provider: newFake(t), mounted: map[string]mounted{}}
	return reach(t, hostagent.New(hostagent.Config{Providers: machine.Providers{able(): m, fake.Name: newFake(t)}, Files: newFiles(t)})), m
}

func first() hostagent.Machine {
	return hostagent.Machine{Provider: able(), ID: machinetest.First}
}

func requestsArriveWhole(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	request := machine.LaunchRequest{
		ID: machinetest.First, UserData: []byte{0, 0xff, '<'}, Type: "m5.large", DiskSize: 30, HopLimit: 2, SubnetID: machinetest.SubnetID, Cluster: "Blue_1", ImageID: "ami-1",
		Key:    machine.Key{Name: "ops", Public: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS"},
		Scaled: true, Spot: true, Lifecycle: "Warmed:Stopped", Pods: 8, PodSubnetIDs: []string{"subnet-a"}, SecurityGroups: []string{"sg-0123456789abcdef0"}, OwnIDs: true, HostRoot: true, SimulatePods: true, NamePrefix: "fargate-", Avoid: []netip.Addr{netip.MustParseAddr("172.31.0.5")},
	}
	isWhole(t, []any{request})
	if _, err := host.Launch(t.Context(), hostagent.Launch{Provider: able(), Request: request}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(request, m.launched, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("the provider is asked for (-sent +got):\n%s", diff)
	}
}

func errorsKeepTheirIdentity(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	sentinels := []error{
		machine.ErrNotFound, machine.ErrDamaged, machine.ErrSubnetFull, machine.ErrPodsFull, machine.ErrDiskReserve,
		machine.CannotError{Provider: "x", Do: v1alpha1.RunPods},
		errors.New("of no kind\nand two lines"),
	}
	for _, sentinel := range sentinels {
		failure := fmt.Errorf("launching machine %s: %w", machinetest.First, sentinel)
		m.Fail(fake.Launch, failure)
		_, err := host.Launch(t.Context(), hostagent.Launch{Provider: able(), Request: machine.LaunchRequest{ID: machinetest.First}})
		if err == nil || err.Error() != failure.Error() {
			t.Errorf("the error is %q, want %q", err, failure)
		}
		for _, other := range sentinels[:len(sentinels)-1] {
			if is, want := errors.Is(err, other), errors.Is(failure, other); is != want {
				t.Errorf("%q is %q: %v, want %v", err, other, is, want)
			}
		}
	}
}

func unknownProviders(t *testing.T, reach Reach) {
	host, _ := newHost(t, reach)
	unknown := hostagent.Machine{Provider: "capi", ID: machinetest.First}
	_, launched := host.Launch(t.Context(), hostagent.Launch{Provider: "capi", Request: machine.LaunchRequest{ID: machinetest.First}})
	_, got := host.Get(t.Context(), unknown)
	_, listed := host.List(t.Context(), hostagent.List{Provider: "capi"})
	_, reported := host.Report(t.Context(), unknown)
	_, dialed := host.Dial(t.Context(), hostagent.Dial{Machine: unknown, Address: netip.MustParseAddrPort("127.0.0.1:1")})
	swept := host.Sweep(t.Context(), hostagent.Sweep{Provider: "capi", Cluster: "blue"})
	for what, err := range map[string]error{
		"Launch": launched, "Get": got, "List": listed, "Stop": host.Stop(t.Context(), unknown), "Terminate": host.Terminate(t.Context(), unknown), "Report": reported, "Dial": dialed, "Sweep": swept,
	} {
		if err == nil || err.Error() != "this service has no provider of capi machines" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func reports(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	if report, err := host.Report(t.Context(), first()); err != nil || report != nil {
		t.Errorf("of a machine that reports nothing: %v, %v", report, err)
	}
	m.report = &bootreport.Report{Reason: bootreport.DiskFull, Message: "no space", Since: time.Date(2026, 11, 1, 2, 3, 4, 0, time.UTC)}
	if report, err := host.Report(t.Context(), first()); err != nil || !cmp.Equal(report, m.report) {
		t.Errorf("the report is %v, %v; want %v", report, err, m.report)
	}
	reporter, err := machine.Ask[machine.Reporter](hostagent.Providers(host, able()), able(), v1alpha1.KeepLogs)
	if err != nil {
		t.Fatal(err)
	}
	if report, ok := reporter.Report(machinetest.First); !ok || !cmp.Equal(report, *m.report) {
		t.Errorf("a provider's report is %v, %v; want %v", report, ok, m.report)
	}
	if report, ok := reporter.Report(machinetest.Second); ok {
		t.Errorf("another machine reports %v", report)
	}
}

// connections checks that bytes go both ways, that deadlines hold and that the end of one side is seen by the other.
func connections(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ended := make(chan error, 1)
	go func() {
		served, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(served, served)
			err = errors.Join(err, served.Close())
		}
		ended <- err
	}()
	dialer, err := machine.Ask[machine.Dialer](hostagent.Providers(host, able()), able(), v1alpha1.JoinNetwork)
	if err != nil {
		t.Fatal(err)
	}
	connection, err := dialer.DialInside(t.Context(), machinetest.First, "tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if m.dialed != machinetest.First {
		t.Errorf("machine %q is dialed", m.dialed)
	}
	answer := make([]byte, 5)
	if _, err := connection.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(connection, answer); err != nil || string(answer) != "hello" {
		t.Errorf("the answer is %q, %v", answer, err)
	}
	if err := connection.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := connection.Read(answer); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("after the deadline: %v", err)
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, network := range []string{"tcp", "tcp4"} {
		_, err := dialer.DialInside(t.Context(), machinetest.First, network, "127.0.0.1:1")
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("by %s: %v, want a refused connection", network, err)
		}
	}
	for network, address := range map[string]string{"unix": "/run/a.sock", "udp": "127.0.0.1:1", "tcp6": "127.0.0.1:1"} {
		if _, err := dialer.DialInside(t.Context(), machinetest.First, network, address); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s by %s inside a machine: %v, want a refusal", address, network, err)
		}
	}
}

func refusedConnections(t *testing.T, reach Reach) {
	host, _ := newHost(t, reach)
	_, err := host.Dial(t.Context(), hostagent.Dial{Machine: first(), Address: netip.MustParseAddrPort("127.0.0.1:1")})
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial: %v, want a refused connection", err)
	}
}

func machinesThatCannot(t *testing.T, reach Reach) {
	host, _ := newHost(t, reach)
	unable := hostagent.Machine{Provider: fake.Name, ID: machinetest.First}
	if _, err := host.Report(t.Context(), unable); !errors.Is(err, machine.CannotError{Provider: fake.Name, Do: v1alpha1.KeepLogs}) {
		t.Errorf("Report: %v", err)
	}
	if err := host.Unmount(t.Context(), hostagent.Unmount{Machine: unable, Target: target}); !errors.Is(err, machine.CannotError{Provider: fake.Name, Do: v1alpha1.MountVolumes}) {
		t.Errorf("Unmount: %v", err)
	}
	_, err := host.Dial(t.Context(), hostagent.Dial{Machine: unable, Address: netip.MustParseAddrPort("127.0.0.1:1")})
	if !errors.Is(err, machine.CannotError{Provider: fake.Name, Do: v1alpha1.JoinNetwork}) {
		t.Errorf("Dial: %v", err)
	}
}

// callersThatGoAway checks that the context of an operation ends with that of its caller.
func callersThatGoAway(t *testing.T, reach Reach) {
	host, m := newHost(t, reach)
	begun, ended := make(chan struct{}), make(chan struct{})
	m.launch = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := host.Launch(ctx, hostagent.Launch{Provider: able(), Request: machine.LaunchRequest{ID: machinetest.First}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Launch: %v", err)
	}
	<-ended
}
