// SPDX-License-Identifier: Apache-2.0

package karpentercontroller

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/manifest/manifesttest"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

const account = identityservice.DefaultAccount

// world is a cluster whose control plane is to run Karpenter.
type world struct {
	*Controller
	t       *testing.T
	store   *identityservicetest.Memory
	now     time.Time
	assumed int
	ended   int
	minor   string
}

type roles struct{}

func (roles) Prepare(_ context.Context, role string) (string, error) {
	return "profile-of-" + role, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, store: identityservicetest.NewMemory(), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), minor: release.Default().Minor()}
	for _, entity := range []identityservice.Entity{
		iam.Account{ID: account}, iam.Role{ID: "AROANODES", Account: account, Path: "/", Name: v1alpha1.ClusterNodeRole("blue"), MaxSession: time.Hour},
	} {
		if err := w.store.Create(t.Context(), entity); err != nil {
			t.Fatal(err)
		}
	}
	plane := component.Config{Dir: statedir.Cluster(filepath.Join(t.TempDir(), "clusters", "blue")), Network: clusternetworktest.Network()}
	plane.VPC, plane.Region = true, region.Region{Name: "eu-west-1"}
	plane.Cluster.Namespace, plane.Cluster.Spec.Name = "blue", "blue"
	plane.Cluster.Spec.Compute = &v1alpha1.ClusterCompute{Enabled: true, NodePools: v1alpha1.NodePoolNames()}
	scheme := runtime.NewScheme()
	if err := rbacv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{nodePools, nodeClaims, nodeClasses} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	var err error
	w.Controller, err = New(Config{
		Plane: plane, Cluster: fake.NewClientBuilder().WithScheme(scheme).Build(), Roles: roles{}, Log: slog.New(slog.DiscardHandler),
		Kinds: func() ([]*unstructured.Unstructured, error) { return nil, nil },
		Minor: func(context.Context) (string, error) { return w.minor, nil },
		Store: func() identityservice.Store { return w.store },
		Assume: func(string) (identityservice.Credentials, error) {
			w.assumed++
			return identityservice.Credentials{AccessKeyID: "ASIA1", Secret: iam.SecretOf("secret"), SessionToken: "token", Issued: w.now, Expires: w.now.Add(time.Hour)}, nil
		},
		Ended: func() { w.ended++ }, Now: func() time.Time { return w.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) names(kind schema.GroupVersionKind) (names []string) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := w.Cluster.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	for _, item := range list.Items {
		names = append(names, item.GetName())
	}
	slices.Sort(names)
	return names
}

func (w *world) make(kind schema.GroupVersionKind, name string, finalizers ...string) {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetName(name)
	object.SetFinalizers(finalizers)
	if err := w.Cluster.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) prepared() printed {
	w.t.Helper()
	if err := w.prepare(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	raw, err := os.ReadFile(w.Plane.KarpenterCredentials())
	if err != nil {
		w.t.Fatal(err)
	}
	var is printed
	if err := json.Unmarshal(raw, &is); err != nil {
		w.t.Fatal(err)
	}
	return is
}

func TestObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	granted, err := rights(w.Plane)
	if err != nil {
		t.Fatal(err)
	}
	manifesttest.Bindings(t, granted,
		"User muster:karpenter: karpenter", "User muster:karpenter: karpenter in kube-system", "User muster:karpenter: karpenter-core", "User muster:karpenter: karpenter-dns in kube-system")
	wanted, unwanted, err := pools(w.Plane, "profile", "ami-0123456789abcdef0")
	if err != nil || len(unwanted) > 0 {
		t.Fatal(unwanted, err)
	}
	manifesttest.Golden(t, "testdata/pools.yaml", wanted)
	w.Plane.Cluster.Spec.Compute.NodePools = []v1alpha1.NodePoolName{v1alpha1.PoolSystem}
	wanted, unwanted, err = pools(w.Plane, "profile", "ami-0123456789abcdef0")
	if err != nil || len(wanted) != 2 || len(unwanted) != 1 || unwanted[0].GetName() != "general-purpose" {
		t.Errorf("%d wanted, unwanted %v, %v", len(wanted), unwanted, err)
	}
}

// The policy is the example's but for the network, which is the cluster's VPC, its queue, and zonal shifts of the cluster alone.
func TestPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := policy(w.Plane, account, "arn:aws:iam::"+account+":role/nodes")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "karpenter", "controller-policy.json"))
	if err != nil {
		t.Fatal(err)
	}
	example := strings.NewReplacer("us-east-1", "eu-west-1", "role/karpenter-nodes", "role/nodes", "cluster/muster", "cluster/blue", `"muster"`, `"blue"`).Replace(string(raw))
	is, want := statements(t, text), statements(t, example)
	for id, statement := range want {
		switch id {
		case "AllowInterruptionQueueActions", "AllowScopedEC2InstanceAccessActions", "AllowScopedEC2NetworkAccessActions", "AllowZonalShiftStatus":
			continue
		}
		if is[id] != statement {
			t.Errorf("%s: %s, and in the example %s", id, is[id], statement)
		}
	}
	if network := is["AllowNetworkOfTheCluster"]; !strings.Contains(network, "vpc/"+w.Plane.Network.VPCID) || len(text) > 10240 {
		t.Errorf("%d characters; of the network: %s", len(text), network)
	}
}

// statements are the statements of a policy by their Sids.
func statements(t *testing.T, text string) map[string]string {
	t.Helper()
	var parsed struct{ Statement []map[string]any }
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, statement := range parsed.Statement {
		raw, err := json.Marshal(statement)
		if err != nil {
			t.Fatal(err)
		}
		all[statement["Sid"].(string)] = string(raw)
	}
	return all
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if Left(w.Plane) {
		t.Error("something is left before anything was made")
	}
	first := w.prepared()
	if first.Version != 1 || first.AccessKeyID != "ASIA1" || first.SecretAccessKey != "secret" || first.RoleID == "" || !Left(w.Plane) {
		t.Errorf("credentials %+v", first)
	}
	if got := w.names(nodePools); !slices.Equal(got, []string{"general-purpose", "system"}) || len(w.names(nodeClasses)) != 1 {
		t.Errorf("NodePools %v, classes %v", got, w.names(nodeClasses))
	}
	for later, want := range map[time.Duration]int{0: 1, 29 * time.Minute: 1, 31 * time.Minute: 2} {
		w := newWorld(t)
		w.prepared()
		w.now = w.now.Add(later)
		if w.prepared(); w.assumed != want {
			t.Errorf("after %v credentials were made %d times, want %d", later, w.assumed, want)
		}
	}
	// Somebody deletes the role: it is made again, and so are the credentials.
	if err := identityservice.RemoveKarpenterRole(t.Context(), w.store, account, "blue"); err != nil {
		t.Fatal(err)
	}
	if again := w.prepared(); again.RoleID == first.RoleID || w.assumed != 2 {
		t.Errorf("credentials of the role %s, which was %s", again.RoleID, first.RoleID)
	}
}

func TestPoolsThatAreNotAskedForAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepared()
	w.make(nodePools, "own")
	w.Plane.Cluster.Spec.Compute.NodePools = []v1alpha1.NodePoolName{v1alpha1.PoolGeneralPurpose}
	w.prepared()
	if got := w.names(nodePools); !slices.Equal(got, []string{"general-purpose", "own"}) {
		t.Errorf("NodePools %v", got)
	}
}

func TestTakeAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.prepared()
	const finalizer = "karpenter.sh/termination"
	w.make(nodeClaims, "machine", finalizer)
	w.Plane.Cluster.Spec.Compute = &v1alpha1.ClusterCompute{}
	for range 2 {
		if err := w.takeAway(t.Context()); err == nil || !Left(w.Plane) {
			t.Fatalf("with a NodeClaim: %v", err)
		}
	}
	if len(w.names(nodeClasses)) != 1 {
		t.Error("the EC2NodeClass went before the machines")
	}
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(nodeClaims)
	if err := w.Cluster.Get(t.Context(), client.ObjectKey{Name: "machine"}, claim); err != nil {
		t.Fatal(err)
	}
	claim.SetFinalizers(nil)
	if err := w.Cluster.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 3 {
		if err = w.takeAway(t.Context()); err == nil {
			break
		}
	}
	if err != nil || Left(w.Plane) || len(w.names(nodePools)) > 0 || len(w.names(nodeClasses)) > 0 {
		t.Errorf("%v; left are %v, %v", err, w.names(nodePools), w.names(nodeClasses))
	}
	var granted rbacv1.ClusterRoleBindingList
	if err := w.Cluster.List(t.Context(), &granted); err != nil || len(granted.Items) > 0 {
		t.Errorf("left are %v, %v", granted.Items, err)
	}
	state, err := w.store.State()
	if err != nil {
		t.Fatal(err)
	}
	if _, there := state.Role(account, v1alpha1.ClusterKarpenterRole("blue")); there {
		t.Error("the role is left")
	}
	w.Run(t.Context())
	if w.ended != 1 {
		t.Errorf("the end was told %d times", w.ended)
	}
}

// While the identity service is away nothing is made that Karpenter would start with, and nothing is lost.
func TestWithoutTheIdentityService(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store
	w.Store = func() identityservice.Store { return nil }
	if err := w.prepare(t.Context()); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("prepared: %v", err)
	}
	if _, err := os.Stat(w.Plane.KarpenterCredentials()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Karpenter would start: %v", err)
	}
	w.Store = func() identityservice.Store { return store }
	w.prepared()
	w.Store = func() identityservice.Store { return nil }
	if err := errors.Join(w.takeAway(t.Context()), w.takeAway(t.Context()), w.takeAway(t.Context())); !errors.Is(err, identityservice.ErrNotReady) || !Left(w.Plane) {
		t.Errorf("taken away: %v", err)
	}
}

// A cluster that is switched off again before it is prepared, wherever that was cut short, keeps nothing of it.
func TestSwitchedOffBeforeItIsPrepared(t *testing.T) {
	t.Parallel()
	failing := errors.New("no")
	for name, cut := range map[string]func(*world){
		"without kinds":  func(w *world) { w.Kinds = func() ([]*unstructured.Unstructured, error) { return nil, failing } },
		"without a role": func(w *world) { w.Roles = rolesThatFail{failing} },
		"without credentials": func(w *world) {
			w.Assume = func(string) (identityservice.Credentials, error) { return identityservice.Credentials{}, failing }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cut(w)
			if err := w.prepare(t.Context()); !errors.Is(err, failing) {
				t.Fatal(err)
			}
			if !Left(w.Plane) {
				t.Error("nothing is left to take away, by the word of the controller")
			}
			w.Plane.Cluster.Spec.Compute = &v1alpha1.ClusterCompute{}
			for range 3 {
				if err := w.takeAway(t.Context()); err == nil {
					break
				}
			}
			var granted rbacv1.ClusterRoleBindingList
			if err := w.Cluster.List(t.Context(), &granted); err != nil || len(granted.Items) > 0 || len(w.names(nodePools)) > 0 || len(w.names(nodeClasses)) > 0 || Left(w.Plane) {
				t.Errorf("left are %v, %v, %v, %v", granted.Items, w.names(nodePools), w.names(nodeClasses), err)
			}
			state, err := w.store.State()
			if err != nil {
				t.Fatal(err)
			}
			if _, there := state.Role(account, v1alpha1.ClusterKarpenterRole("blue")); there {
				t.Error("the role is left")
			}
		})
	}
}

type rolesThatFail struct{ err error }

func (r rolesThatFail) Prepare(context.Context, string) (string, error) { return "", r.err }
