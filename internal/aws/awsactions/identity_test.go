// SPDX-License-Identifier: Apache-2.0

package awsactions_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

type noInstances struct{}

func (noInstances) Lookup(string) (identityservice.Instance, bool) {
	return identityservice.Instance{}, false
}

// STS and IAM are asked for every operation that the SDK knows, unsigned: an action that is not there is told apart
// from a sender who is nobody.
func TestSTSAndIAMAnswerWhatTheListSays(t *testing.T) {
	sealer, err := identityservice.OpenSealer(filepath.Join(t.TempDir(), "keys.json"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	service, err := identityservice.New(identityservice.Config{
		Store: identityservicetest.NewMemory(), Sealer: sealer, Instances: noInstances{}, Region: "us-east-1", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	front, err := service.Front(awsfront.Config{})
	if err != nil {
		t.Fatal(err)
	}
	answered := func(api, action string) bool {
		form := url.Values{"Action": {action}, "Version": {awstable.Service(api).Version}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		body, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		switch text := string(body); {
		case strings.Contains(text, "<Code>InvalidAction</Code>"):
			return false
		case strings.Contains(text, "<Code>MissingAuthenticationToken</Code>"):
			return true
		case action == "AssumeRoleWithWebIdentity" && strings.Contains(text, "Value null at &#39;roleArn&#39;"):
			return true // nobody signs it
		default:
			t.Fatalf("%s:%s: %s", api, action, text)
			return false
		}
	}
	list, here := awsactions.NewList(), map[string][]string{}
	for _, c := range []struct {
		api    string
		client reflect.Type
	}{{"sts", reflect.TypeFor[*sts.Client]()}, {"iam", reflect.TypeFor[*iam.Client]()}} {
		for method := range c.client.Methods() {
			listed, _ := list.Find(c.api, method.Name)
			if method.Name == "Options" || listed.Mark == awsactions.Refused || !answered(c.api, method.Name) { // the service answers refused actions with the reason
				continue
			}
			here[c.api] = append(here[c.api], method.Name)
			if _, ok := list.Find(c.api, method.Name); !ok {
				t.Errorf("%s:%s is answered and not on the list", c.api, method.Name)
			}
		}
	}
	if len(here["sts"]) < 3 || len(here["iam"]) < 70 {
		t.Fatalf("answered: %v", here)
	}
	problems := awsactions.Problems(func(service, action string) bool {
		if all, ok := here[service]; ok {
			return slices.Contains(all, action)
		}
		a, _ := list.Find(service, action)
		return a.Mark != awsactions.Refused && !list.NotYet(service, action)
	})
	for _, problem := range problems {
		t.Error(problem)
	}
}
