// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

// slow is a store whose updates wait, once hold is there.
type slow struct {
	*identityservicetest.Memory
	hold, held chan struct{}
}

func (s *slow) Update(ctx context.Context, from *identityservice.State, e identityservice.Entity) error {
	if s.hold != nil {
		s.held <- struct{}{}
		<-s.hold
	}
	return s.Memory.Update(ctx, from, e)
}

// A change that waits for another one is decided by what is true when its turn comes: its sender may have lost the right
// or the key meanwhile.
func TestAChangeThatWaitsIsDecidedInItsTurn(t *testing.T) {
	const all = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	for want, revoke := range map[string]func(context.Context, *iam.Client, string) error{
		"AccessDenied": func(ctx context.Context, admin *iam.Client, _ string) error {
			_, err := admin.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("all")})
			return err
		},
		"InvalidClientTokenId": func(ctx context.Context, admin *iam.Client, id string) error {
			_, err := admin.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{UserName: aws.String("alice"), AccessKeyId: &id, Status: types.StatusTypeInactive})
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			store := &slow{held: make(chan struct{})}
			w := newWorld(t, func(c *identityservice.Config) {
				store.Memory = c.Store.(*identityservicetest.Memory)
				c.Store = store
			})
			admin, alice := w.iam(w.admin()), w.user("alice")
			must[*iam.PutUserPolicyOutput](w)(admin.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("all"), PolicyDocument: aws.String(all)}))
			store.hold = make(chan struct{})
			revoked, made := make(chan error, 1), make(chan error, 1)
			go func() { revoked <- revoke(t.Context(), admin, alice.id) }()
			<-store.held
			go func() {
				_, err := w.iam(alice).CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("mallory")})
				made <- err
			}()
			for deadline, tick := time.Now().Add(time.Minute), time.Tick(time.Millisecond); ; <-tick { // until alice has come in
				used, err := admin.GetAccessKeyLastUsed(t.Context(), &iam.GetAccessKeyLastUsedInput{AccessKeyId: &alice.id})
				if err != nil || time.Now().After(deadline) {
					t.Fatal("the key of alice was not used: ", err)
				}
				if *used.AccessKeyLastUsed.ServiceName == "iam" {
					break
				}
			}
			close(store.hold)
			if err := <-revoked; err != nil {
				t.Fatal(err)
			}
			w.wants("what alice asked for before", <-made, want)
			_, err := admin.GetUser(t.Context(), &iam.GetUserInput{UserName: aws.String("mallory")})
			w.wants("mallory", err, "NoSuchEntity")
		})
	}
}
