// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/amazon-eks-pod-identity-webhook/pkg/cache"
	"github.com/aws/amazon-eks-pod-identity-webhook/pkg/containercredentials"
	"github.com/aws/amazon-eks-pod-identity-webhook/pkg/handler"
	"k8s.io/api/admission/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/iam/podpatch"
)

// testing is the prefix of the annotations by which the original's pods say what is around them, and what is expected.
const testingPrefix = "testing.eks.amazonaws.com/"

// around is what is around a pod: its service account, and how the webhook was set up.
type around struct {
	account   map[string]string // annotations
	rules     podpatch.Rules
	container bool // it has container credentials
}

// of reads it from the pod.
func of(pod *corev1.Pod) around {
	says := func(names ...string) (string, bool) {
		for _, name := range names {
			if value, ok := pod.Annotations[testingPrefix+name]; ok {
				return value, true
			}
		}
		return "", false
	}
	a := around{account: map[string]string{}}
	for annotation, names := range map[string][]string{
		"role-arn": {"serviceAccount/roleArn"}, "audience": {"serviceAccount/audience"},
		"sts-regional-endpoints": {"serviceAccount/sts-regional-endpoints", "handler/injectSTS"},
		"token-expiration":       {"serviceAccount/token-expiration", "handler/expiration"},
	} {
		if value, ok := says(names...); ok {
			a.account[podpatch.Domain+"/"+annotation] = value
		}
	}
	a.rules.MountPath, _ = says("handler/mountPath")
	a.rules.Region, _ = says("handler/region")
	c := &a.rules.Container
	c.FullURI, a.container = says("containercredentials/uri")
	c.Audience, _ = says("containercredentials/audience")
	c.MountPath, _ = says("containercredentials/mountPath")
	c.Volume, _ = says("containercredentials/volumeName")
	c.TokenPath, _ = says("containercredentials/tokenPath")
	a.rules.Defaults = a.rules.Defaults.Complete()
	a.container = a.container && c.FullURI != ""
	return a
}

// zero is a source of chance that has none.
type zero struct{}

func (zero) Int63() int64 { return 0 }
func (zero) Seed(int64)   {}

// theirs is the patch of the original, as its webhook answers it.
func theirs(t testing.TB, pod *corev1.Pod, a around) []byte {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default", Annotations: a.account}}
	c := a.rules.Container
	config := &containercredentials.FakeConfig{}
	if a.container {
		config = &containercredentials.FakeConfig{
			Audience: c.Audience, MountPath: c.MountPath, VolumeName: c.Volume, TokenPath: c.TokenPath, FullUri: c.FullURI,
			Identities: map[containercredentials.Identity]bool{{Namespace: "default", ServiceAccount: "default"}: true},
		}
	}
	options := []handler.ModifierOpt{handler.WithServiceAccountCache(cache.NewFakeServiceAccountCache(account)), handler.WithContainerCredentialsConfig(config), handler.WithRegion(a.rules.Region)}
	if a.rules.MountPath != "" {
		options = append(options, handler.WithMountPath(a.rules.MountPath))
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	answer := handler.NewModifier(rand.New(zero{}), options...).MutatePod(&v1beta1.AdmissionReview{Request: &v1beta1.AdmissionRequest{Namespace: "default", Object: runtime.RawExtension{Raw: raw}}})
	if !answer.Allowed {
		t.Fatalf("the original refuses the pod: %v", answer.Result)
	}
	return answer.Patch
}

// ours is the patch of package podpatch.
func ours(t testing.TB, pod *corev1.Pod, a around) []byte {
	t.Helper()
	own, _ := podpatch.ReadAccount(a.account, a.rules.Defaults)
	accounts := podpatch.Accounts{Account: func(namespace, name string) (podpatch.Entry, bool) {
		return own, namespace == "default" && name == "default"
	}}
	var id podpatch.Identity
	if a.container {
		regional, expiration := accounts.Common("default", "default")
		id = a.rules.ContainerIdentity(pod, regional, expiration)
	} else {
		e, known := accounts.Find("default", "default")
		if !known || e.RoleARN == "" {
			return nil
		}
		id = a.rules.WebIdentity(pod, e)
	}
	raw, err := json.Marshal(a.rules.Patch(pod, id))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// originals are the pods of the original's tests, by the names of their files.
func originals(t testing.TB) map[string]*corev1.Pod {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/amazon-eks-pod-identity-webhook").Output()
	if err != nil {
		t.Fatal(err)
	}
	pods := map[string]*corev1.Pod{}
	dir := filepath.Join(strings.TrimSpace(string(out)), "pkg", "handler", "testdata")
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pod := &corev1.Pod{}
		if err := yaml.Unmarshal(raw, pod); err != nil {
			return err
		}
		pod.Namespace, pod.Spec.ServiceAccountName = "default", "default"
		name, err := filepath.Rel(dir, path)
		pods[name] = pod
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// Every pod of the original's tests gets the patch that its annotation expects, byte for byte, and what the original
// makes of it today.
func TestOriginalPods(t *testing.T) {
	pods := originals(t)
	if len(pods) < 24 {
		t.Errorf("there are %d pods, and 24 were there in v0.6.17", len(pods))
	}
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) {
			a := of(pod)
			got := ours(t, pod, a)
			if want := pod.Annotations[testingPrefix+"expectedPatch"]; want != "" && string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if want := theirs(t, pod, a); !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nthe original gives\n%s", got, want)
			}
		})
	}
}

// FuzzPatch compares the two for any pod, any annotations, and any setup.
func FuzzPatch(f *testing.F) {
	for _, pod := range originals(f) {
		spec, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(spec, "arn:aws:iam::111122223333:role/x", "true", "3600", "us-west-2", "/mnt", "a, b", "900", false)
		f.Add(spec, "x", "maybe", "600", "", "", "\"", "never", true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, role, regional, expiration, region, mount, skip, podExpiration string, container bool) {
		pod := &corev1.Pod{}
		// The original's cache for tests does not know the least expiration, which the one that it runs with has.
		if seconds, err := strconv.ParseInt(expiration, 10, 64); err == nil && seconds < 600 || json.Unmarshal(raw, pod) != nil {
			return
		}
		pod.Namespace, pod.Spec.ServiceAccountName = "default", "default"
		if pod.Annotations != nil {
			pod.Annotations[podpatch.Domain+"/skip-containers"] = skip
			pod.Annotations[podpatch.Domain+"/token-expiration"] = podExpiration
		}
		sent, err := json.Marshal(pod) // as an API server sends it: that is compared
		if err != nil || json.Unmarshal(sent, pod) != nil {
			return
		}
		a := around{account: map[string]string{
			podpatch.Domain + "/role-arn": role, podpatch.Domain + "/sts-regional-endpoints": regional, podpatch.Domain + "/token-expiration": expiration,
		}, container: container}
		a.rules = podpatch.Rules{Region: region, MountPath: mount, Container: podpatch.DefaultContainerCredentials()}
		a.rules.Defaults = a.rules.Defaults.Complete()
		if got, want := ours(t, pod, a), theirs(t, pod, a); !bytes.Equal(got, want) {
			t.Errorf("got\n%s\nthe original gives\n%s", got, want)
		}
	})
}
