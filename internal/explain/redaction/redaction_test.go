// SPDX-License-Identifier: Apache-2.0

package redaction_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/explain/redaction"
)

// keys are private keys of all algorithms and encodings that Kubernetes' programs write.
func keys(t *testing.T) map[string][]byte {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{"EC PRIVATE KEY": sec1, "RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(rsaKey)}
	for name, key := range map[string]any{"EC": ec, "RSA": rsaKey, "Ed25519": ed} {
		if found[name], err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Each key goes, in whatever form it stands in a text; of its base64 not even the middle stays.
func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	for name, der := range keys(t) {
		kind := "PRIVATE KEY"
		if strings.HasSuffix(name, kind) {
			kind = name
		}
		block := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		lines := strings.Split(block, "\n")
		middle := lines[1][8:40]
		quoted, err := json.Marshal(map[string]string{"message": block})
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{
			"PEM":              "before\n" + block + "after",
			"JSON":             string(quoted),
			"indented":         "key: |\n  " + strings.ReplaceAll(block, "\n", "\n  "),
			"cut at its end":   "before\n" + strings.Join(lines[:2], "\n"),
			"cut at its begin": strings.Join(lines[1:], "\n") + "after",
			"kubeconfig":       "client-key-data: " + base64.StdEncoding.EncodeToString([]byte(block)),
			"base64 of PEM":    "x " + base64.StdEncoding.EncodeToString([]byte(block)) + " y",
			"base64 of DER":    "x " + base64.StdEncoding.EncodeToString(der) + " y",
			"URL's base64":     "x " + base64.RawURLEncoding.EncodeToString(der) + " y",
		} {
			got, count := redaction.Text(text)
			inner := base64.StdEncoding.EncodeToString([]byte(block))[40:80]
			if strings.Contains(got, middle) || strings.Contains(got, inner) || strings.Contains(got, base64.StdEncoding.EncodeToString(der)[8:40]) || len(count) == 0 {
				t.Errorf("%s, %s: %v\n%s", name, form, count, got)
			}
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	const hidden = "hUnter2x9Q"
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJlLW9mLXRva2Vu"
	for text, want := range map[string]string{
		"token " + token + " end":                                            "token [left out: JSON web token] end",
		"token=" + token:                                                     "token=[left out: JSON web token]",
		"k8s-aws-v1.aHR0cHM6Ly9zdHM":                                         "[left out: EKS token]",
		"abcdef.0123456789abcdef is refused":                                 "abcdef.[left out: bootstrap token] is refused",
		"GET /?X-Amz-Signature=0123abcd&X-Amz-Expires=60":                    "GET /?X-Amz-Signature=[left out: signature or session token of a request]&X-Amz-Expires=60",
		"Authorization: Bearer " + hidden:                                    "Authorization: Bearer [left out: credential of a request]",
		`{"Authorization":["Basic ` + hidden + `"]}`:                         `{"Authorization":["[left out: value with the name of a secret]"]}`,
		"sends bearer " + hidden + hidden:                                    "sends bearer [left out: credential of a request]",
		"proxy http://anna:" + hidden + "@proxy:3128/":                       "proxy http://anna:[left out: password in an address]@proxy:3128/",
		"AWS_SECRET_ACCESS_KEY=" + hidden:                                    "AWS_SECRET_ACCESS_KEY=[left out: value with the name of a secret]",
		"DB_PASSWORD='" + hidden + " x'":                                     "DB_PASSWORD='[left out: value with the name of a secret]'",
		`{"password":"a\"` + hidden + `","user":"anna"}`:                     `{"password":"[left out: value with the name of a secret]","user":"anna"}`,
		`"{\"clientSecret\":\"` + hidden + `\",\"user\":\"anna\"}"`:          `"{\"clientSecret\":\"[left out: value with the name of a secret]\",\"user\":\"anna\"}"`,
		"  password: " + hidden + "\n":                                       "  password: [left out: value with the name of a secret]\n",
		"run --token " + hidden + " --nodes 3":                               "run --token [left out: value with the name of a secret] --nodes 3",
		`{"name":"API_KEY","value":"` + hidden + `"}`:                        `{"name":"API_KEY","value":"[left out: value with the name of a secret]"}`,
		`"auths":{"r.example":{"auth":"` + hidden + `"}}`:                    `"auths":{"r.example":{"auth":"[left out: value with the name of a secret]"}}`,
		`E1120 "x" err="password=\"` + hidden + `\" is wrong"`:               `E1120 "x" err="password=\"[left out: value with the name of a secret]\" is wrong"`,
		`{"msg":"password=\"` + hidden + `\"","n":1}` + "\nx":                `{"msg":"password=\"[left out: value with the name of a secret]\"","n":1}` + "\nx",
		`{"msg":"{\"a\":\"{\\\"token\\\":\\\"` + hidden + `\\\"}\"}"}`:       `{"msg":"{\"a\":\"{\\\"token\\\":\\\"[left out: value with the name of a secret]\\\"}\"}"}`,
		`{"z":1,  "a":"plain"}`:                                              `{"z":1,  "a":"plain"}`,
		"password=\uE007\uE007" + hidden:                                     "password=[left out: value with the name of a secret]",
		"the node i-0123456789abcdef0 is not Ready":                          "the node i-0123456789abcdef0 is not Ready",
		"token expired; Secrets is forbidden: no token":                      "token expired; Secrets is forbidden: no token",
		"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE---": "-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE---",
		"system:node:ip-10-0-0-1.ec2.internal asked https://127.0.0.1:6443/": "system:node:ip-10-0-0-1.ec2.internal asked https://127.0.0.1:6443/",
	} {
		got, _ := redaction.Text(text)
		if got != want || strings.Contains(got, hidden) {
			t.Errorf("of %q\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	const hidden = "hUnter2x9Q"
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: hidden}},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": hidden, "example.com/password": hidden, "x/" + "abcdef.0123456789abcdef": "y", "plain": "stays"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: []string{"--password=" + hidden}, Env: []corev1.EnvVar{{Name: "PLAIN", Value: hidden}}}}},
	}
	raw, count, err := redaction.JSON(map[string]any{"pod": pod, "userData": []byte(hidden), "template": map[string]string{"userData": hidden}, "generation": json.Number("12345678901234567890")})
	if err != nil || strings.Contains(string(raw), hidden) || strings.Contains(string(raw), base64.StdEncoding.EncodeToString([]byte(hidden))) || strings.Contains(string(raw), "0123456789abcdef") {
		t.Errorf("%v\n%s", err, raw)
	}
	if !strings.Contains(string(raw), "stays") || !strings.Contains(string(raw), "12345678901234567890") || count[redaction.UserData] != 2 || count[redaction.Environment] != 1 {
		t.Errorf("%v\n%s", count, raw)
	}
	secret := corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret"}, Data: map[string][]byte{"a": []byte(hidden)}}
	if raw, _, err := redaction.JSON([]any{secret}); !errors.Is(err, redaction.ErrSecret) || raw != nil {
		t.Errorf("of a Secret: %v, %s", err, raw)
	}
	if _, _, err := redaction.JSON(make(chan int)); err == nil {
		t.Error("no error of what JSON cannot hold")
	}
}

// Whatever a text is, it is redacted in one pass: a second pass finds nothing new, and valid UTF-8 stays so.
func FuzzText(f *testing.F) {
	f.Add("token=abc password: \"x\" eyJhbGciOiJ.eyJhbGciOiJ.x abcdef.0123456789abcdef")
	f.Add("-----BEGIN PRIVATE KEY-----\nAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		once, count := redaction.Text(text)
		if len(count) == 0 && len(once) < len(text) {
			t.Errorf("%q became %q, and nothing was counted", text, once)
		}
	})
}
