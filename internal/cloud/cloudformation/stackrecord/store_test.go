// SPDX-License-Identifier: Apache-2.0

package stackrecord_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
)

func store(t *testing.T) stackrecord.Store {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	key, err := stackrecord.OpenKey(filepath.Join(t.TempDir(), "stacks.key"))
	if err != nil {
		t.Fatal(err)
	}
	return stackrecord.Store{Management: fake.NewClientBuilder().WithScheme(scheme).Build(), Key: key}
}

func record() *stackrecord.Record {
	r := &stackrecord.Record{ID: "0b1c2d3e", Name: "Net", Description: "d"}
	r.ARN = stackrecord.ARNOf("us-east-1", "000000000000", r.Name, r.ID)
	r.Asked = stackplan.Asked{
		Template: `{"Parameters": {"P": {"Type": "String", "NoEcho": true}}, "Resources": {"A": {"Type": "AWS::EC2::VPC"}}}`, Parameters: map[string]string{"P": "abcdefgh"}, Tags: map[string]string{"team": "a"},
	}
	r.Operation = stackrecord.Operation{ID: "o", Caller: []byte("abcdefgh")}
	r.Outputs = []stackrecord.Output{{Name: "P", Value: "abcdefgh", Secret: true}, {Name: "V", Value: "vpc-1", Export: "e"}}
	r.State = stack.State{Status: stack.CreateInProgress, OnFailure: stack.Rollback, Resources: []stack.Resource{{
		LogicalID: "A", Type: "AWS::EC2::VPC", Serial: 1, PhysicalID: "vpc-1", Status: stack.CreateComplete, Attributes: map[string]any{"x": "abcdefgh"},
		Definition: stack.Definition{Properties: map[string]any{"P": "abcdefgh"}},
	}}}
	return r
}

// A stack is read as it was written, and its object shows no secret.
func TestAStackIsKept(t *testing.T) {
	s := store(t)
	r := record()
	r.Tell(time.Unix(1700000000, 0).UTC(), []stack.Event{{Status: stack.CreateInProgress}, {LogicalID: "A", Status: stack.CreateComplete}})
	if err := s.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	again, err := s.Named(t.Context(), "Net")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.State, again.State); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(r.Outputs, again.Outputs); diff != "" || again.ARN != r.ARN || again.Asked.Parameters["P"] != "abcdefgh" {
		t.Errorf("%s %+v", diff, again)
	}
	object := &v1alpha1.Stack{}
	if err := s.Management.Get(t.Context(), client.ObjectKey{Name: r.ID}, object); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(object)
	if err != nil || bytes.Contains(raw, []byte("abcdefgh")) || !bytes.Contains(raw, []byte("****")) {
		t.Errorf("%v %s", err, raw)
	}
}

// A change that another one overtook is decided anew, and an error changes nothing.
func TestChangesAreDecidedAnew(t *testing.T) {
	s := store(t)
	if err := s.Create(t.Context(), record()); err != nil {
		t.Fatal(err)
	}
	tries := 0
	if _, err := s.Update(t.Context(), "0b1c2d3e", func(r *stackrecord.Record) error {
		if tries++; tries == 1 {
			if _, err := s.Update(t.Context(), r.ID, func(r *stackrecord.Record) error { r.State.Reason = "other"; return nil }); err != nil {
				return err
			}
		}
		r.TerminationProtection = true
		return nil
	}); err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	refused := errors.New("refused")
	if _, err := s.Update(t.Context(), "0b1c2d3e", func(r *stackrecord.Record) error { r.State.Reason = "third"; return refused }); !errors.Is(err, refused) {
		t.Error(err)
	}
	if r, err := s.Get(t.Context(), "0b1c2d3e"); err != nil || r.State.Reason != "other" || !r.TerminationProtection {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	r := record()
	for range 700 {
		r.Tell(time.Unix(1700000000, 0), []stack.Event{{LogicalID: "A", Status: stack.UpdateInProgress}})
	}
	if len(r.Events) != 500 || r.Told != 700 || r.Events[499].ID != "0b1c2d3e-700" {
		t.Errorf("%d events of %d", len(r.Events), r.Told)
	}
}

// A key that is lost or damaged is told, and nothing is begun anew.
func TestAnotherKey(t *testing.T) {
	s := store(t)
	if err := s.Create(t.Context(), record()); err != nil {
		t.Fatal(err)
	}
	s.Key = store(t).Key
	if _, err := s.Named(t.Context(), "Net"); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "stacks.key")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stackrecord.OpenKey(path); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Error(err)
	}
}
