// SPDX-License-Identifier: Apache-2.0

package loginkey_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/sshkey"
	"muster.dev/muster/internal/machine/loginkey"
	"muster.dev/muster/internal/machine/machine"
)

func record(name, kind, data string) *v1alpha1.AWSRecord {
	return &v1alpha1.AWSRecord{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AWSRecordSpec{Type: kind, Data: runtime.RawExtension{Raw: []byte(data)}}}
}

// A machine is launched with the key pair of its name and no other one, whatever else is on record.
func TestOf(t *testing.T) {
	t.Parallel()
	made, _, _, err := sshkey.New(sshkey.ED25519)
	if err != nil {
		t.Fatal(err)
	}
	public := made.String()
	pair := func(name, key string) string { return `{"name":"` + name + `","publicKey":"` + key + `"}` }
	records := []client.Object{
		record("b", "placement-group", pair("mine", "ssh-rsa other")),
		record("c", "key-pair", pair("Mine", "ssh-rsa other")),
		record("d", "key-pair", pair("mine", public)),
		record("e", "key-pair", pair("broken", public+` x\nssh-rsa second`)),
		record("f", "key-pair", pair("empty", "")),
	}
	for name, test := range map[string]struct {
		key    string
		was    machine.Instance
		beside string // another record
		want   machine.Key
		fails  string
	}{
		"its own":              {key: "mine", want: machine.Key{Name: "mine", Public: public}},
		"beside a broken one":  {key: "mine", beside: `{"name":1}`, want: machine.Key{Name: "mine", Public: public}},
		"perhaps a broken one": {key: "gone", beside: `{"name":1}`, fails: "reading key pair a"},
		"none":                 {},
		"launched before":      {key: "mine", was: machine.Instance{ID: "i-1"}},
		"it is gone by now":    {key: "gone", was: machine.Instance{ID: "i-1"}},
		"it is not there":      {key: "gone", fails: "the key pair 'gone' does not exist"},
		"a part of a name":     {key: "min", fails: "does not exist"},
		"more than one line":   {key: "broken", fails: "public key of broken"},
		"without a public key": {key: "empty", fails: "public key of empty"},
	} {
		all := records
		if test.beside != "" {
			all = append([]client.Object{record("a", "key-pair", test.beside)}, records...)
		}
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
		key, err := loginkey.Of(t.Context(), api, &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{KeyName: test.key}}, test.was)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || err == nil && key != test.want {
			t.Errorf("%s: %+v, %v", name, key, err)
		}
	}
}

// While the management plane does not answer, no machine is launched without its key.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	away := errors.New("it is away")
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return away },
	})
	if _, err := loginkey.Of(t.Context(), api, &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{KeyName: "mine"}}, machine.Instance{}); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
}
