// SPDX-License-Identifier: Apache-2.0

package podpatch_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/iam/podpatch"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const role = "arn:aws:iam::111122223333:role/app"

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "app",
			InitContainers:     []corev1.Container{{Name: "first", Image: "image"}},
			Containers:         []corev1.Container{{Name: "app", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}}, {Name: "side", Image: "image"}},
			Volumes:            []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

func rules(change func(*podpatch.Rules)) podpatch.Rules {
	r := podpatch.Rules{Region: "eu-west-1"}
	if change != nil {
		change(&r)
	}
	return r.Complete()
}

// Patches that the original gives, too, are compared with it in test/awssdk/podwebhook. This test has the patches that
// it does not give, and a patch of each kind to look at.
func TestPatch(t *testing.T) {
	account := func(r *podpatch.Rules) {
		r.Account = podpatch.Account{Trust: "-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n", EndpointURL: "https://172.31.0.3"}
	}
	for name, c := range map[string]struct {
		rules     podpatch.Rules
		pod       *corev1.Pod
		container bool
	}{
		"web-identity":          {rules: rules(nil), pod: pod(nil)},
		"container-credentials": {rules: rules(nil), pod: pod(nil), container: true},
		"account":               {rules: rules(account), pod: pod(nil)},
		"account-of-nothing": {rules: rules(account), pod: pod(func(p *corev1.Pod) {
			p.Spec.Volumes, p.Spec.InitContainers = nil, nil
		})},
		"account-annotated": {rules: rules(account), container: true, pod: pod(func(p *corev1.Pod) {
			p.Annotations, p.Labels = map[string]string{podpatch.Domain + "/skip-containers": "side"}, map[string]string{"a": "b"}
		})},
		"account-of-its-own": {rules: rules(account), pod: pod(func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "app", Env: []corev1.EnvVar{
				{Name: "AWS_CA_BUNDLE", Value: "/own.pem"},
				{Name: "AWS_ENDPOINT_URL", Value: "https://own"},
				{Name: "AWS_REGION", Value: "x"},
				{Name: "AWS_STS_REGIONAL_ENDPOINTS", Value: "legacy"},
				{Name: "AWS_ROLE_ARN", Value: "own"},
			}}}
		})},
		"account-windows": {rules: rules(account), pod: pod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "windows"} })},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			id := c.rules.WebIdentity(c.pod, podpatch.Entry{RoleARN: role, Audience: podpatch.Audience, UseRegionalSTS: true, TokenExpiration: podpatch.DefaultExpiration})
			if c.container {
				id = c.rules.ContainerIdentity(c.pod, false, podpatch.DefaultExpiration)
			}
			raw, err := json.MarshalIndent(c.rules.Patch(c.pod, id), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, append(raw, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(raw)+"\n" != string(want) {
				t.Errorf("%v: got\n%s\nwant\n%s", err, raw, want)
			}
			if a, _ := json.Marshal(c.pod); string(a) != func() string { b, _ := json.Marshal(before); return string(b) }() {
				t.Error("the pod itself was changed")
			}
		})
	}
}

func TestReadAccount(t *testing.T) {
	d := podpatch.Defaults{RegionalSTS: true, Partition: "aws", AccountID: "111122223333"}.Complete()
	a := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[podpatch.Domain+"/"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        podpatch.Entry
		warnings    int
	}{
		"nothing":            {nil, podpatch.Entry{"", podpatch.Audience, true, 86400}, 0},
		"a role":             {a("role-arn", role), podpatch.Entry{role, podpatch.Audience, true, 86400}, 0},
		"the name of a role": {a("role-arn", "team/app"), podpatch.Entry{"arn:aws:iam::111122223333:role/team/app", podpatch.Audience, true, 86400}, 0},
		"no role":            {a("role-arn", "arn:aws:s3:::bucket"), podpatch.Entry{"arn:aws:s3:::bucket", podpatch.Audience, true, 86400}, 1},
		"all":                {a("role-arn", role, "audience", "vault", "sts-regional-endpoints", "false", "token-expiration", "3600"), podpatch.Entry{role, "vault", false, 3600}, 0},
		"too short":          {a("token-expiration", "1"), podpatch.Entry{"", podpatch.Audience, true, 600}, 0},
		"nonsense":           {a("sts-regional-endpoints", "perhaps", "token-expiration", "long"), podpatch.Entry{"", podpatch.Audience, true, 86400}, 2},
	} {
		got, warnings := podpatch.ReadAccount(c.annotations, d)
		if got != c.want || len(warnings) != c.warnings {
			t.Errorf("%s: %+v, %q; want %+v", name, got, warnings, c.want)
		}
	}
}

// The ConfigMap counts where annotations name no role; */NAME counts last, and not for container credentials.
func TestAccounts(t *testing.T) {
	entries, err := podpatch.ReadConfigMap(`{"a/app":{"RoleARN":"exact","Audience":"x","UseRegionalSTS":true},"*/app":{"RoleARN":"any","TokenExpiration":700}}`, podpatch.Defaults{}.Complete())
	if err != nil {
		t.Fatal(err)
	}
	accounts := podpatch.Accounts{Configured: entries, Account: func(namespace, name string) (podpatch.Entry, bool) {
		switch namespace {
		case "own":
			return podpatch.Entry{RoleARN: "own", TokenExpiration: 900}, true
		case "bare":
			return podpatch.Entry{TokenExpiration: 800}, true
		}
		return podpatch.Entry{}, false
	}}
	for namespace, want := range map[string]struct {
		role       string
		known      bool
		expiration int64 // of Common
		regional   bool
	}{
		"own": {"own", true, 900, false}, "bare": {"any", true, 800, false}, "a": {"exact", true, 86400, true}, "b": {"any", true, 86400, false},
	} {
		e, known := accounts.Find(namespace, "app")
		regional, expiration := accounts.Common(namespace, "app")
		if e.RoleARN != want.role || known != want.known || expiration != want.expiration || regional != want.regional {
			t.Errorf("%s: %+v, %v, %v, %d; want %+v", namespace, e, known, regional, expiration, want)
		}
	}
	if e, known := accounts.Find("b", "other"); known || e.RoleARN != "" {
		t.Errorf("a stranger: %+v, %v", e, known)
	}
	for _, wrong := range []string{``, `[]`, `{"app":{}}`, `{"/app":{}}`, `{"a/":{}}`, `{"a/b/c":{}}`, `{"a/b":null}`, `{"a/b":1}`} {
		if got, err := podpatch.ReadConfigMap(wrong, podpatch.Defaults{}); err == nil {
			t.Errorf("%s: %v", wrong, got)
		}
	}
}

func TestExpirations(t *testing.T) {
	r := rules(func(r *podpatch.Rules) { r.Jitter = func(n int64) int64 { return n - 1 } })
	annotated := func(seconds string) *corev1.Pod {
		return pod(func(p *corev1.Pod) { p.Annotations = map[string]string{podpatch.Domain + "/token-expiration": seconds} })
	}
	for name, c := range map[string]struct {
		pod       *corev1.Pod
		own       int64
		web, cont int64
	}{
		"none chose":        {pod(nil), 86400, 86400, 86400},
		"the account's":     {pod(nil), 3600, 3600, 3600},
		"the pod's":         {annotated("1200"), 3600, 1200, 1200},
		"the pod's, short":  {annotated("5"), 3600, 600, 600},
		"the pod's, wrong":  {annotated("x"), 3600, 3600, 3600},
		"the pod's, a day":  {annotated("86400"), 3600, 86400, 86400},
		"less than nothing": {annotated("-9"), 3600, 600, 600},
	} {
		if got := r.WebIdentity(c.pod, podpatch.Entry{TokenExpiration: c.own}).Expiration; got != c.web {
			t.Errorf("%s: %d, want %d", name, got, c.web)
		}
		if got := r.ContainerIdentity(c.pod, false, c.own).Expiration; got != c.cont {
			t.Errorf("%s, with an association: %d, want %d", name, got, c.cont)
		}
	}
	r.Jitter = nil
	if got := r.ContainerIdentity(pod(nil), false, 86400).Expiration; got != 79200 {
		t.Errorf("without chance: %d", got)
	}
}

func FuzzReadConfigMap(f *testing.F) {
	f.Add(`{"a/b":{"RoleARN":"x"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := podpatch.ReadConfigMap(text, podpatch.Defaults{}.Complete())
		for key, e := range entries {
			if err != nil || strings.Count(key, "/") != 1 || e.TokenExpiration == 0 {
				t.Fatalf("%q: %+v, %v", key, e, err)
			}
		}
	})
}
