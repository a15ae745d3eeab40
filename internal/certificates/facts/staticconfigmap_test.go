// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/certificates/policy"
)

func configMap(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "machines"}, Data: map[string]string{configMapKey: text}}
}

func TestStaticConfigMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := configMap(listAB)
		other.Name = "other"
		client, e := fake.NewClientset(configMap(listA), other), &ear{}
		maps := client.CoreV1().ConfigMaps("kube-system")
		s, err := NewStaticConfigMap(StaticConfigMapConfig{Client: client, Namespace: "kube-system", ConfigMap: "machines", OnChange: e.hear, Logger: e.logger()})
		if err != nil {
			t.Fatal(err)
		}
		if f := s.MachineOfNode("a"); f.State != policy.Unknown || s.HasSynced() {
			t.Errorf("before it was read: %+v", f)
		}
		running(t, s)
		elapse(time.Second)
		if !knows(s, "a") || knows(s, "b") || !s.HasSynced() || !cmp.Equal(e.heard(), []Change{{All: true}}) {
			t.Error("it was not read, or not told")
		}
		put := func(m *corev1.ConfigMap) {
			if _, err := maps.Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		put(configMap(listAB))
		if !knows(s, "b") || !cmp.Equal(e.heard(), []Change{{Machines: []string{"b"}, Nodes: []string{"b"}, Names: []string{"b"}}}) {
			t.Error("a new version was not read, or not told")
		}
		put(configMap("machines: {}"))
		if p := s.Status().Problem; !knows(s, "b") || !strings.Contains(p, "the ConfigMap kube-system/machines cannot be read") {
			t.Errorf("a bad version: %q", p)
		}
		empty := configMap("")
		empty.Data = nil
		put(empty)
		if p := s.Status(); !knows(s, "b") || p.Problem == "" {
			t.Errorf("no key: %+v", p)
		}
		if err := maps.Delete(t.Context(), "machines", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		elapse(5 * time.Second)
		if !knows(s, "b") {
			t.Error("gone for a moment")
		}
		elapse(time.Second)
		if f := s.MachineOfNode("b"); f.State != policy.Unknown || f.Why != "the ConfigMap kube-system/machines does not exist" {
			t.Errorf("gone: %+v", f)
		}
		e.heard()
		if _, err := maps.Create(t.Context(), configMap(listB), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c := e.heard(); !knows(s, "b") || knows(s, "a") || len(c) == 0 || !c[0].All || s.Status().Problem != "" {
			t.Errorf("back: %+v", c)
		}
	})
}

func TestAConfigMapMayCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, e := fake.NewClientset(), &ear{}
		s, err := NewStaticConfigMap(StaticConfigMapConfig{Client: client, Namespace: "kube-system", ConfigMap: "machines", OnChange: e.hear, Logger: e.logger()})
		if err != nil {
			t.Fatal(err)
		}
		running(t, s)
		elapse(time.Second)
		if f := s.MachineOfNode("a"); f.State != policy.Unknown || f.Why != "the ConfigMap kube-system/machines does not exist" || s.HasSynced() {
			t.Errorf("none: %+v", f)
		}
		if p := s.Status().Problem; p != "the ConfigMap kube-system/machines does not exist" {
			t.Errorf("problem %q", p)
		}
		bad := configMap("x")
		if _, err := client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), bad, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if f := s.MachineOfNode("a"); f.State != policy.Unknown || !strings.Contains(f.Why, "cannot be read") || s.HasSynced() {
			t.Errorf("bad: %+v", f)
		}
		if _, err := client.CoreV1().ConfigMaps("kube-system").Update(t.Context(), configMap(listA), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c := e.heard(); !knows(s, "a") || len(c) == 0 || !c[len(c)-1].All {
			t.Errorf("good: %+v", c)
		}
	})
}

func TestNewStaticConfigMapRefuses(t *testing.T) {
	client, logger, tell := fake.NewClientset(), slog.New(slog.DiscardHandler), func(Change) {}
	for missing, c := range map[string]StaticConfigMapConfig{
		"a client":         {Namespace: "n", ConfigMap: "m", Logger: logger, OnChange: tell},
		"a namespace":      {Client: client, ConfigMap: "m", Logger: logger, OnChange: tell},
		"a name":           {Client: client, Namespace: "n", Logger: logger, OnChange: tell},
		"a logger":         {Client: client, Namespace: "n", ConfigMap: "m", OnChange: tell},
		"somebody to tell": {Client: client, Namespace: "n", ConfigMap: "m", Logger: logger},
	} {
		if _, err := NewStaticConfigMap(c); err == nil {
			t.Errorf("without %s: accepted", missing)
		}
	}
}
