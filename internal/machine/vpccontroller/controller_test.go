// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
)

const (
	one, two = "vpc-0123456789abcdef0", "vpc-0123456789abcdef1"
	a, b     = "subnet-0000000000000000a", "subnet-0000000000000000b"
	machineA = "i-0000000000000000a"
)

var zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// world is a management plane and a directory of VPCs. It says what was done, in order.
type world struct {
	t     *testing.T
	api   client.Client
	store *machine.Store
	root  string
	did   []string
	fail  error // of the next network or process
	made  time.Time
	host  []netip.Prefix // of load balancers

	hostFails error
	*reconciler
}

func (w *world) Ensure(id string) error { return w.do("ensure " + id) }

func (w *world) Remove(id string) error {
	if err := w.do("remove " + id); err != nil {
		return err
	}
	return vpc.Remove(filepath.Join(w.root, id))
}

func (w *world) Start(_ context.Context, id string) error { return w.do("start " + id) }

func (w *world) Stop(_ context.Context, id string) error { return w.do("stop " + id) }

func (w *world) do(what string) error {
	if len(w.did) == 0 || w.did[len(w.did)-1] != what {
		w.did = append(w.did, what)
	}
	err := w.fail
	w.fail = nil
	return err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, root: filepath.Join(t.TempDir(), "vpc"), made: time.Unix(1700000000, 0)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.VPC{}, &v1alpha1.Subnet{}).Build()
	own, err := region.Find("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	w.store, err = machine.NewStore(machine.StoreConfig{Dir: t.TempDir(), Subnets: w.subnetsOnDisk, Region: own})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Root: w.root, Zones: zones, Store: w.store, Networks: w, Processes: w, HostRanges: func() ([]netip.Prefix, error) { return w.host, w.hostFails }}
	if err := config.validate(); err != nil {
		t.Fatal(err)
	}
	w.reconciler = &reconciler{Config: config, api: w.api}
	return w
}

// subnetsOnDisk are what machines get addresses of.
func (w *world) subnetsOnDisk() (subnets []machine.Subnet, err error) {
	all, err := vpc.List(w.root)
	for _, d := range all {
		for _, s := range d.Subnets {
			subnets = append(subnets, machine.Subnet{ID: s.ID, VPC: d.ID, Zone: s.Zone, CIDR: s.CIDR})
		}
	}
	return subnets, err
}

func (w *world) vpc(name, cidr string, isDefault bool) {
	w.t.Helper()
	w.create(&v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.VPCSpec{CIDRBlock: cidr, IsDefault: isDefault}})
}

func (w *world) subnet(name, of, cidr, zone string) {
	w.t.Helper()
	w.create(&v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SubnetSpec{VPCID: of, CIDRBlock: cidr, AvailabilityZone: zone}})
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.made = w.made.Add(time.Second)
	object.SetCreationTimestamp(metav1.NewTime(w.made))
	if err := w.api.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reconcile(name string) reconcile.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) delete(object client.Object, name string) {
	w.t.Helper()
	object.SetName(name)
	if err := w.api.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// says checks the condition Ready of an object: its reason and a part of its message; "" is an object that is gone.
func (w *world) says(object client.Object, name, reason, message string) {
	w.t.Helper()
	err := w.api.Get(w.t.Context(), types.NamespacedName{Name: name}, object)
	if reason == "" {
		if !apierrors.IsNotFound(err) {
			w.t.Errorf("%s is still there: %v", name, err)
		}
		return
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var conditions []metav1.Condition
	switch object := object.(type) {
	case *v1alpha1.VPC:
		conditions = object.Status.Conditions
	case *v1alpha1.Subnet:
		conditions = object.Status.Conditions
	}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) || (ready.Status == metav1.ConditionTrue) != (reason == reasonReady) {
		w.t.Errorf("%s says %+v, want %s: %s", name, ready, reason, message)
	}
}

func (w *world) described(id string, want ...string) {
	w.t.Helper()
	d, err := vpc.Read(w.root, id)
	if err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, s := range d.Subnets {
		got = append(got, s.ID+" "+s.CIDR.String()+" "+s.Zone)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("subnets of %s (-want +got):\n%s", id, diff)
	}
}

func TestLifeOfAVPC(t *testing.T) {
	w := newWorld(t)
	w.subnet(a, one, "10.0.16.0/20", "us-east-1a")
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, a, reasonNoVPC, "there is no VPC "+one)
	w.vpc(one, "10.0.0.0/16", true)
	w.reconcile(one)
	w.says(&v1alpha1.VPC{}, one, reasonReady, "")
	w.says(&v1alpha1.Subnet{}, a, reasonReady, "")
	w.described(one, a+" 10.0.16.0/20 us-east-1a")
	w.subnet(b, one, "10.0.0.0/20", "us-east-1b")
	w.reconcile(one)
	w.described(one, b+" 10.0.0.0/20 us-east-1b", a+" 10.0.16.0/20 us-east-1a")
	if d, err := vpc.Read(w.root, one); err != nil || !d.Default {
		t.Errorf("got %+v, %v", d, err)
	}

	// A machine and an endpoint keep their subnets, which keep the VPC.
	if _, err := w.store.Put("local", machine.LaunchRequest{ID: machineA, SubnetID: a}); err != nil {
		t.Fatal(err)
	}
	network, err := vpc.Open(w.root, one)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.SetEndpoint(vpc.Endpoint{
		Cluster: "lab", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.4")}, APIServer: netip.MustParseAddrPort("127.0.0.1:1"), EgressSocket: "/x",
		PodCIDR: netip.MustParsePrefix("10.244.0.0/16"),
	}); err != nil {
		t.Fatal(err)
	}
	w.delete(&v1alpha1.VPC{}, one)
	w.delete(&v1alpha1.Subnet{}, a)
	w.delete(&v1alpha1.Subnet{}, b)
	w.subnet("subnet-0000000000000000c", one, "10.0.32.0/20", "us-east-1c")
	if result := w.reconcile(one); result.RequeueAfter != lookAgain {
		t.Errorf("looks again after %v", result.RequeueAfter)
	}
	w.says(&v1alpha1.VPC{}, one, reasonSubnets, a+", "+b+", subnet-0000000000000000c")
	w.says(&v1alpha1.Subnet{}, a, reasonInUse, "machine "+machineA)
	w.says(&v1alpha1.Subnet{}, b, reasonInUse, "the endpoint of cluster lab")
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000c", reasonDeleting, "its VPC is being deleted")
	w.described(one, b+" 10.0.0.0/20 us-east-1b", a+" 10.0.16.0/20 us-east-1a")

	if err := errors.Join(w.store.Delete(machineA), network.RemoveEndpoint("lab")); err != nil {
		t.Fatal(err)
	}
	w.delete(&v1alpha1.Subnet{}, "subnet-0000000000000000c")
	w.did = nil
	w.fail = errors.New("it does not end")
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: one}}); err == nil || !strings.Contains(err.Error(), "it does not end") {
		t.Errorf("got %v", err)
	}
	w.reconcile(one)
	w.says(&v1alpha1.VPC{}, one, "", "")
	w.says(&v1alpha1.Subnet{}, a, "", "")
	w.says(&v1alpha1.Subnet{}, b, "", "")
	if diff := cmp.Diff([]string{"stop " + one, "remove " + one}, w.did); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if _, err := vpc.Read(w.root, one); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the description is left: %v", err)
	}
}

func TestSubnetsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	w.vpc(one, "10.0.0.0/16", false)
	w.subnet(b, one, "10.0.0.0/20", "us-east-1a")
	w.subnet("subnet-0000000000000000c", one, "10.0.8.0/24", "us-east-1a")
	w.subnet("subnet-0000000000000000d", one, "10.1.0.0/24", "us-east-1a")
	w.subnet("subnet-0000000000000000e", one, "10.0.32.0/24", "us-east-1z")
	w.subnet("subnet-0000000000000000f", one, "10.0.0.0/15", "us-east-1a")
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, b, reasonReady, "")
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000c", reasonConflict, "10.0.8.0/24 overlaps 10.0.0.0/20 of "+b)
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000d", reasonRange, "10.1.0.0/24 is not within 10.0.0.0/16")
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000e", reasonZone, `"us-east-1z" is not one of the region's: us-east-1a, us-east-1b, us-east-1c`)
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000f", reasonRange, "is not within")
	w.described(one, b+" 10.0.0.0/20 us-east-1a")

	// One that is older by its time, but came later, does not push out what machines may be in.
	w.made = time.Unix(1600000000, 0)
	w.subnet(a, one, "10.0.0.0/24", "us-east-1a")
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, a, reasonConflict, "overlaps")
	w.says(&v1alpha1.Subnet{}, b, reasonReady, "")

	// Once what was in its way is gone it counts.
	w.delete(&v1alpha1.Subnet{}, b)
	w.reconcile(one)
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, a, reasonReady, "")
	w.described(one, a+" 10.0.0.0/24 us-east-1a", "subnet-0000000000000000c 10.0.8.0/24 us-east-1a")
	w.delete(&v1alpha1.Subnet{}, "subnet-0000000000000000d")
	w.reconcile(one)
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000d", "", "")
}

// Two VPCs may have the same range; one of them alone is the default.
func TestTwoVPCs(t *testing.T) {
	w := newWorld(t)
	w.vpc(one, "172.31.0.0/16", true)
	w.vpc(two, "172.31.0.0/16", false)
	w.vpc("vpc-0123456789abcdef2", "172.31.0.0/16", true)
	w.subnet(a, one, "172.31.0.0/20", "us-east-1a")
	w.subnet(b, two, "172.31.0.0/20", "us-east-1a")
	w.subnet("subnet-0000000000000000c", "vpc-0123456789abcdef2", "172.31.0.0/20", "us-east-1a")
	for _, name := range []string{"vpc-0123456789abcdef2", two, one} {
		w.reconcile(name)
	}
	w.described(one, a+" 172.31.0.0/20 us-east-1a")
	w.described(two, b+" 172.31.0.0/20 us-east-1a")
	w.says(&v1alpha1.VPC{}, "vpc-0123456789abcdef2", reasonDefault, one+" is the account's default VPC")
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000c", reasonNoVPC, "is not made")
	if _, err := vpc.Read(w.root, "vpc-0123456789abcdef2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second default VPC is described: %v", err)
	}
	if diff := cmp.Diff([]string{"ensure " + two, "start " + two, "ensure " + one, "start " + one}, w.did); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	w.fail = errors.New("no namespaces left")
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: one}}); err == nil {
		t.Error("a network that could not be made is no error")
	}
	w.says(&v1alpha1.VPC{}, one, reasonFailed, "no namespaces left")
	w.delete(&v1alpha1.VPC{}, "vpc-0123456789abcdef2") // which has no finalizer
	w.delete(&v1alpha1.Subnet{}, "subnet-0000000000000000c")
	w.reconcile("vpc-0123456789abcdef2")
	w.says(&v1alpha1.Subnet{}, "subnet-0000000000000000c", "", "")
}

// A VPC has the way out that its spec says, none by default; one that is said badly lets nothing out, and says why.
func TestEgress(t *testing.T) {
	w := newWorld(t)
	w.vpc(one, "10.0.0.0/16", false)
	set := func(egress v1alpha1.VPCEgress) {
		var object v1alpha1.VPC
		if err := w.api.Get(t.Context(), client.ObjectKey{Name: one}, &object); err != nil {
			t.Fatal(err)
		}
		object.Spec.Egress = egress
		if err := w.api.Update(t.Context(), &object); err != nil {
			t.Fatal(err)
		}
	}
	private := netip.MustParsePrefix("10.20.0.0/16")
	for _, c := range []struct {
		asked   v1alpha1.VPCEgress
		want    egresspolicy.Policy
		reason  string
		message string
	}{
		{v1alpha1.VPCEgress{}, egresspolicy.Policy{Mode: egresspolicy.None}, reasonReady, ""},
		{v1alpha1.VPCEgress{Mode: v1alpha1.EgressNAT, AllowedRanges: []string{"10.20.0.0/16"}}, egresspolicy.Policy{Mode: egresspolicy.NAT, Allowed: []netip.Prefix{private}}, reasonReady, ""},
		{v1alpha1.VPCEgress{Mode: v1alpha1.EgressNAT, AllowedRanges: []string{"127.0.0.0/8"}}, egresspolicy.Policy{}, reasonEgress, "spec.egress.allowedRanges[0]"},
		{v1alpha1.VPCEgress{Mode: v1alpha1.EgressNAT, DeniedRanges: []string{"10.20.0.0/16"}}, egresspolicy.Policy{Mode: egresspolicy.NAT, Denied: []netip.Prefix{private}}, reasonReady, ""},
		{v1alpha1.VPCEgress{Mode: v1alpha1.EgressNone}, egresspolicy.Policy{Mode: egresspolicy.None}, reasonReady, ""},
	} {
		set(c.asked)
		w.reconcile(one)
		described, err := vpc.Read(w.root, one)
		if err != nil || !cmp.Equal(described.Egress, c.want, cmpopts.EquateComparable(netip.Prefix{})) {
			t.Errorf("%+v is described as %+v, %v", c.asked, described.Egress, err)
		}
		w.says(&v1alpha1.VPC{}, one, c.reason, c.message)
	}
}

// The first call makes the default VPC with its subnets, whenever it is cut short; later calls change nothing.
func TestFirst(t *testing.T) {
	for cut := range 5 {
		w := newWorld(t)
		n := 0
		described := []vpc.Description{{ID: two, CIDR: netip.MustParsePrefix("172.31.0.0/16")}, vpc.NewDefault(zones, egresspolicy.NAT, func(prefix string) string { n++; return fmt.Sprintf("%s%017d", prefix, n) })}
		if err := vpc.Describe(w.root, described[1]); err != nil {
			t.Fatal(err)
		}
		before, err := vpc.Read(w.root, described[1].ID)
		if err != nil {
			t.Fatal(err)
		}
		left := cut
		failing := interceptor.NewClient(w.api.(client.WithWatch), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if left--; left < 0 {
					return errors.New("cut short")
				}
				return c.Create(ctx, object, options...)
			},
		})
		if err := First(t.Context(), failing, described); (err != nil) != (cut < 4) {
			t.Errorf("cut after %d: %v", cut, err)
		}
		for range 2 {
			if err := First(t.Context(), w.api, described); err != nil {
				t.Fatal(err)
			}
		}
		var vpcs v1alpha1.VPCList
		var subnets v1alpha1.SubnetList
		if err := errors.Join(w.api.List(t.Context(), &vpcs), w.api.List(t.Context(), &subnets)); err != nil {
			t.Fatal(err)
		}
		if len(vpcs.Items) != 1 || !vpcs.Items[0].Spec.IsDefault || vpcs.Items[0].Spec.CIDRBlock != "172.31.0.0/16" || vpc.ValidateID(vpcs.Items[0].Name) != nil {
			t.Fatalf("cut after %d: %+v", cut, vpcs.Items)
		}
		got := map[string]string{}
		for _, subnet := range subnets.Items {
			if subnet.Spec.VPCID == vpcs.Items[0].Name {
				got[subnet.Spec.CIDRBlock] = subnet.Spec.AvailabilityZone
				if !subnet.Spec.MapPublicIPOnLaunch {
					t.Errorf("default subnet %s has no MapPublicIpOnLaunch, as AWS's have", subnet.Spec.CIDRBlock)
				}
			}
		}
		if want := map[string]string{"172.31.0.0/20": "us-east-1a", "172.31.16.0/20": "us-east-1b", "172.31.32.0/20": "us-east-1c"}; !cmp.Equal(got, want) || len(subnets.Items) != 3 {
			t.Errorf("cut after %d: %v", cut, got)
		}
		w.reconcile(vpcs.Items[0].Name)
		w.says(&v1alpha1.VPC{}, vpcs.Items[0].Name, reasonReady, "")
		if mode := vpcs.Items[0].Spec.Egress.Mode; mode != v1alpha1.EgressNAT {
			t.Errorf("the way out of the default VPC is %q", mode)
		}
		after, err := vpc.Read(w.root, described[1].ID) // its machines may have addresses already
		if diff := cmp.Diff(before, after, cmpopts.EquateComparable(netip.Prefix{})); diff != "" || err != nil {
			t.Errorf("the network changed: %v\n%s", err, diff)
		}
	}
}
