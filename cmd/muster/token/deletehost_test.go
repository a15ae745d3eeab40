// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
)

func TestDeleteHost(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, door(t)...)
	if err := runTokens(t.Context(), b, nil, "create", "--node-name", "worker-1", "--address", "10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMap
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: "machines"}, &list); err != nil {
		t.Fatal(err)
	}
	list.Data["machines.yaml"] += "- id: i-1\n  nodeName: listed-by-hand\n"
	if err := b.Client.Update(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	command := deleteHost(b.O, b.Planes.Cluster)
	command.SetContext(t.Context())
	if hosts, _ := command.ValidArgsFunction(command, nil, ""); !slices.Equal(hosts, []string{"worker-1"}) {
		t.Errorf("completed %q", hosts)
	}
	if hosts, _ := command.ValidArgsFunction(command, []string{"worker-1"}, ""); len(hosts) > 0 {
		t.Errorf("completed %q twice", hosts)
	}
	err := b.Run(t.Context(), command, "worker-2", "worker-1")
	clitest.WantErr(t, err, `no host "worker-2" is registered`, false)
	if b.Out.String() != "host \"worker-1\" forgotten\n" {
		t.Errorf("said %q", b.Out.String())
	}
	if err := b.Run(t.Context(), deleteHost(b.O, b.Planes.Cluster), "worker-1"); err == nil {
		t.Error("forgotten twice")
	}
}
