// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/arn"
)

// Check returns a function that says why a resource of an account cannot be given a key, by the key's ARN: it is of
// another account or region, is not there, is disabled or is pending deletion.
func Check(management client.Client, region string, now func() time.Time) func(ctx context.Context, account, arn string) error {
	return func(ctx context.Context, account, text string) error {
		parsed, err := arn.Parse(text)
		id, isKey := strings.CutPrefix(parsed.Resource, "key/")
		switch {
		case err != nil || parsed.Service != service || !isKey || !isKeyID(id):
			return fmt.Errorf("%.300q is not the ARN of a KMS key, like arn:aws:kms:%s:%s:key/ID", text, region, account)
		case parsed.Region != region || parsed.Account != account:
			return fmt.Errorf("the key %s is not of this account and region: it must be in %s of %s", text, region, account)
		}
		found, err := keys.Get(ctx, management, id)
		switch {
		case apierrors.IsNotFound(err), err == nil && found.Data.gone(now()):
			return fmt.Errorf("there is no key %s", text)
		case err != nil:
			return err
		case found.Data.state() != stateEnabled:
			return fmt.Errorf("the key %s is %s: it must be Enabled", text, found.Data.state())
		}
		return nil
	}
}
