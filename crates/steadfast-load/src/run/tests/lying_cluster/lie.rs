//! Lies of a cluster or a client, and what the accounting must find.

use crate::workload::OpKind;

/// The wrong thing that the cluster or the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Nothing.
    None,
    /// Acknowledges, and applies nothing.
    OnlyAcknowledged,
    /// Applies twice, and acknowledges.
    Twice,
    /// Applies twice, and reports an ambiguous failure.
    TwiceAmbiguous,
    /// Applies, and reports a failure.
    ReportedFailed,
    /// Applies and acknowledges, and undoes the change of the document.
    Undone,
    /// Applies and acknowledges, and leaves the journal as it is.
    NotJournaled,
    /// Applies to the document of another worker, and acknowledges.
    Elsewhere,
    /// Returns another CAS, as for an answer that is masked as success.
    WrongCas,
    /// Stores the value with a letter changed.
    Corrupted,
    /// Stores only the beginning of the value.
    Truncated,
    /// Adds at the wrong end.
    WrongEnd,
    /// Returns another value of a counter.
    WrongResult,
    /// Calls rejections ambiguous.
    CalledAmbiguous,
    /// Ignores the CAS that a write expects.
    CasIgnored,
    /// Ignores locks.
    LockIgnored,
    /// Sets another expiry.
    WrongExpiry,
}

/// The lies about every kind of write.
pub(super) const LIES: [Lie; 8] = [
    Lie::None,
    Lie::OnlyAcknowledged,
    Lie::Twice,
    Lie::TwiceAmbiguous,
    Lie::ReportedFailed,
    Lie::Undone,
    Lie::NotJournaled,
    Lie::WrongCas,
];

/// The lies about some kinds, which are found with a journal and without.
pub(super) const SPECIAL_LIES: [(Lie, OpKind); 19] = [
    (Lie::Corrupted, OpKind::Upsert),
    (Lie::Corrupted, OpKind::DurableUpsert),
    (Lie::Corrupted, OpKind::Insert),
    (Lie::Corrupted, OpKind::InsertStatement),
    (Lie::Corrupted, OpKind::Replace),
    (Lie::Corrupted, OpKind::Append),
    (Lie::Corrupted, OpKind::Prepend),
    (Lie::Truncated, OpKind::Upsert),
    (Lie::Truncated, OpKind::DurableUpsert),
    (Lie::Truncated, OpKind::Insert),
    (Lie::Truncated, OpKind::Replace),
    (Lie::Truncated, OpKind::Append),
    (Lie::WrongEnd, OpKind::Append),
    (Lie::WrongEnd, OpKind::Prepend),
    (Lie::WrongResult, OpKind::Increment),
    (Lie::CalledAmbiguous, OpKind::Get),
    (Lie::CasIgnored, OpKind::Replace),
    (Lie::LockIgnored, OpKind::Upsert),
    (Lie::WrongExpiry, OpKind::Touch),
];

/// The violation that must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Lost,
    Twice,
    Unexplained,
}

/// Returns the violation that a lie causes, with a journal and without.
pub(super) fn expected(lie: Lie, kind: OpKind) -> (Found, Found) {
    let grows = matches!(kind, OpKind::Append | OpKind::ArrayAppend);
    let made = matches!(kind, OpKind::Insert | OpKind::InsertStatement);
    // Only on documents of all workers, whose histories have no order then.
    let shared = matches!(
        kind,
        OpKind::DurableUpsert | OpKind::Replace | OpKind::Prepend
    );
    match lie {
        Lie::None => (Found::Nothing, Found::Nothing),
        Lie::OnlyAcknowledged if shared => (Found::Lost, Found::Unexplained),
        Lie::Undone if shared => (Found::Unexplained, Found::Unexplained),
        Lie::OnlyAcknowledged | Lie::Undone => (Found::Lost, Found::Lost),
        // Repeating the same write or removal changes no document.
        Lie::Twice | Lie::TwiceAmbiguous if grows || kind == OpKind::Increment => {
            (Found::Twice, Found::Twice)
        }
        Lie::Twice | Lie::TwiceAmbiguous if kind == OpKind::Prepend => {
            (Found::Twice, Found::Unexplained)
        }
        Lie::Twice | Lie::TwiceAmbiguous => (Found::Twice, Found::Nothing),
        Lie::ReportedFailed if grows || made || shared || kind == OpKind::Remove => {
            (Found::Unexplained, Found::Unexplained)
        }
        // The counter is higher than possible.
        Lie::ReportedFailed if kind == OpKind::Increment => (Found::Unexplained, Found::Twice),
        // A read finds neither the last acknowledged write nor an ambiguous one.
        Lie::ReportedFailed => (Found::Unexplained, Found::Lost),
        Lie::NotJournaled => (Found::Lost, Found::Nothing),
        Lie::Elsewhere => (Found::Unexplained, Found::Lost),
        // A statement returns no CAS.
        Lie::WrongCas if kind == OpKind::InsertStatement => (Found::Nothing, Found::Nothing),
        // Locks of a cluster without a journal may be lost in a failover that is not known.
        Lie::LockIgnored => (Found::Unexplained, Found::Nothing),
        Lie::WrongCas
        | Lie::CasIgnored
        | Lie::WrongExpiry
        | Lie::Corrupted
        | Lie::Truncated
        | Lie::WrongEnd
        | Lie::WrongResult
        | Lie::CalledAmbiguous => (Found::Unexplained, Found::Unexplained),
    }
}
