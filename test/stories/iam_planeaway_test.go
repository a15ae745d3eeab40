// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/api/v1alpha1"
)

// managementAway has parts of the management plane go away, for a minute too, and deletes somebody's user or key in it
// as soon as it takes that. The user is refused; TestPromises measures when, after short outages.
func (w *iam) managementAway(*people) {
	for _, c := range []struct {
		what, process string
		lasts         time.Duration // killed each time that it is started
		times         int
	}{
		{"API server killed for a minute", "management-apiserver", outage, 1},
		{"API server killed", "management-apiserver", 0, 2},
		{"etcd killed for half a minute", "management-etcd", outage / 2, 1},
		{"etcd killed", "management-etcd", 0, 2},
	} {
		for i := range c.times {
			w.t.Run(fmt.Sprintf("%s %d", c.what, i+1), func(t *testing.T) { w.step(t).deletedAfter(c.process, c.lasts, i%2 == 1) })
		}
	}
}

// deletedAfter deletes a user, or the user's key, after an outage.
func (w *iam) deletedAfter(process string, lasts time.Duration, keyAlone bool) {
	const carol = "arn:aws:iam::" + iamAccount + ":user/carol"
	k := w.user("carol")
	w.apply("{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: carol}, spec: {principalARN: '" + carol + "', username: carol}}")
	w.mustKubectl("wait", "accessentry/carol", "--for=jsonpath={.spec.principalID}", "--timeout=10s")
	token := w.token(k, "muster")
	w.believed(token, "carol")
	name := w.mustKubectl("--context", "muster-management", "get", "iamusers", "-o", `jsonpath={.items[?(@.spec.name=="carol")].metadata.name}`)
	resource, namespace := v1alpha1.GroupVersion.WithResource("iamusers"), ""
	if keyAlone {
		resource, namespace, name = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, v1alpha1.NamespaceIAM, strings.ToLower(k.AccessKeyID)
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.dir.ManagementKubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	began, kills := time.Now(), 0
	for kills == 0 || time.Since(began) < lasts {
		if p, ok := w.processes()[process]; ok && syscall.Kill(p.PID, syscall.SIGKILL) == nil {
			kills++
		}
		w.pause(50 * time.Millisecond)
	}
	away := time.Since(began)
	began = time.Now()
	for {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		err = client.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		cancel()
		if err == nil || apierrors.IsNotFound(err) { // an answer may be lost
			break
		}
		if w.pause(10 * time.Millisecond); time.Since(began) > time.Minute {
			w.t.Fatalf("after the outage %s %s is not deleted: %v", resource.Resource, name, err)
		}
	}
	deleted := time.Now()
	w.refused("after an outage a deleted user is refused", token, http.StatusForbidden, "")
	w.t.Logf("%s away for %s (%d kills), deletion of one of the %s taken after %s, refused %s later", process, away.Round(time.Second), kills,
		resource.Resource, deleted.Sub(began).Round(time.Millisecond), time.Since(deleted).Round(time.Millisecond))
	w.mustKubectl("delete", "accessentry", "carol")
	if keyAlone {
		w.mustAWS(nil, "iam", "delete-user", "--user-name", "carol")
	}
}
