// SPDX-License-Identifier: Apache-2.0

package identityservice

// ErrAway is what a store says that cannot reach the management plane.
func ErrAway() error { return errAway }
