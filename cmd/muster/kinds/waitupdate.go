// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
)

// WaitForUpdate returns an Update when it has ended, however it ended.
func WaitForUpdate(ctx context.Context, talk io.Writer, p *Client, key client.ObjectKey, timeout, interval time.Duration) (*v1alpha1.Update, error) {
	progress := terminal.NewWaitProgress(talk)
	defer progress.End()
	update, state := &v1alpha1.Update{}, ""
	err := terminal.Poll(ctx, timeout, interval, func(ctx context.Context) (bool, error) {
		read := &v1alpha1.Update{}
		if err := p.ReadKey(ctx, key, read); apierrors.IsNotFound(err) {
			return false, terminal.Fatal(fmt.Errorf("update %q is gone", key.Name))
		} else if err != nil {
			return false, err
		}
		update = read
		if update.Phase() != v1alpha1.UpdateInProgress {
			return true, nil
		}
		state = updateState(update)
		progress.Show(state)
		return false, nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		progress.End()
		return update, fmt.Errorf("%s: %w; it goes on: muster get updates", terminal.Or(state, "update "+key.Name), err)
	}
	return update, err
}
