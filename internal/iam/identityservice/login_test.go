// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/iam/registrylogin"
)

// TestPasswordsOfTheRegistry follows a password over the registry's own way to the account.
func TestPasswordsOfTheRegistry(t *testing.T) {
	w := newWorld(t, nil)
	w.others["zoo"] = http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		caller, err := w.service.Admit(r, "zoo", body)
		if err != nil {
			answer.WriteHeader(http.StatusForbidden)
			return
		}
		password, expires, err := w.service.Login(caller)
		if err != nil || time.Until(expires) > 12*time.Hour+time.Minute || time.Until(expires) < time.Hour {
			t.Errorf("until %s, %v", expires, err)
		}
		_, _ = answer.Write([]byte(password))
	})
	puller := w.user("puller")
	const document = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ecr:BatchGetImage","Resource":"arn:aws:ecr:*:*:repository/team/*"}]}`
	if _, err := w.iam(w.admin()).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("puller"), PolicyName: aws.String("p"), PolicyDocument: aws.String(document)}); err != nil {
		t.Fatal(err)
	}
	status, password := w.ask(puller, "zoo", region, "/", "", time.Now(), nil)
	if status != http.StatusOK {
		t.Fatal(status, password)
	}
	dir, err := os.MkdirTemp("", "l") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- registrylogin.Serve(ctx, socket, w.service, slog.New(slog.DiscardHandler)) }()
	client := registrylogin.NewClient(socket)
	decide := func(password, repository string) (registrylogin.Answer, error) {
		return client.Decide(t.Context(), registrylogin.Question{
			Password: password, Actions: []string{"ecr:BatchGetImage", "ecr:PutImage"}, Resource: "arn:aws:ecr:eu-west-1:000000000000:repository/" + repository, Source: "10.0.0.1",
		})
	}
	answer, err := decide(password, "team/a")
	if err != nil || answer.Principal != "arn:aws:iam::000000000000:user/puller" || answer.Account != "000000000000" {
		t.Fatalf("%+v %v", answer, err)
	}
	if _, denied := answer.Denied["ecr:BatchGetImage"]; denied || !strings.Contains(answer.Denied["ecr:PutImage"], "is not authorized to perform: ecr:PutImage on resource: arn:aws:ecr:eu-west-1:000000000000:repository/team/a") {
		t.Errorf("denied %v", answer.Denied)
	}
	if answer, err = decide(password, "other"); err != nil || len(answer.Denied) != 2 {
		t.Errorf("another repository: %v %v", answer.Denied, err)
	}
	session := must[*sts.GetSessionTokenOutput](w)(w.sts(puller).GetSessionToken(t.Context(), &sts.GetSessionTokenInput{})).Credentials
	middle, other := len(password)/2, "A"
	if password[middle] == 'A' {
		other = "B"
	}
	var refused *registrylogin.RefusedError
	for name, bad := range map[string]string{
		"nothing": "", "another": "x", "changed": password[:middle] + other + password[middle+1:], "a session token": aws.ToString(session.SessionToken), "long": strings.Repeat("A", 5000),
	} {
		if _, err := decide(bad, "team/a"); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A password is worth nothing once its key is.
	if _, err := w.iam(w.admin()).UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: aws.String("puller"), AccessKeyId: aws.String(puller.id), Status: types.StatusTypeInactive}); err != nil {
		t.Fatal(err)
	}
	if _, err := decide(password, "team/a"); !errors.As(err, &refused) {
		t.Errorf("after the key was switched off: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
