// SPDX-License-Identifier: Apache-2.0

// Package identityservicetest has a store of the identity service in memory that fails on demand.
package identityservicetest
