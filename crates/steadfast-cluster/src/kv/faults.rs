//! Applies faults to commands.

use bytes::BytesMut;
use steadfast_wire::{Datatype, DocumentKey, Feature, Frame, HEADER_LEN, Status};

use super::connection::{CloseReason, Link};
use super::in_flight::Resume;
use super::response::KvResponse;
use super::session::Flow;
use crate::Service;
use crate::fault::{Effect, FaultAnswer, FiredFault, Garble, IncomingRequest};

impl Link {
    /// The rule that hits a command.
    #[cold]
    pub(super) fn fire(&self, frame: &Frame) -> Option<FiredFault> {
        let rules = self.session.rules(frame.opcode());
        let collections =
            self.session.features.contains(Feature::Collections) && rules.document_key;
        let key = DocumentKey::decode(frame.key(), collections).map_or(frame.key(), |key| key.id);
        self.session.shared.faults.fire(&IncomingRequest {
            node: self.session.node.id,
            service: Service::KeyValue,
            opcode: Some(frame.opcode()),
            key,
            bucket: self.session.bucket.as_ref().map(|bucket| &*bucket.name),
        })
    }

    /// Does to a command what a fault says.
    #[cold]
    pub(super) fn suffer(&mut self, frame: Frame, fired: FiredFault) -> Result<(), CloseReason> {
        match fired.effect {
            Effect::Pass => return self.execute(&frame),
            Effect::Delay(by) => self.execute_after(frame, tokio::time::sleep(by)),
            Effect::DelayAnswer(by) => {
                let (answer, flow) = self.execute_aside(&frame);
                self.in_flight.add(&frame, answer.len(), async move {
                    tokio::time::sleep(by).await;
                    Resume::Send(match flow {
                        Flow::Wait(later) => later.await,
                        Flow::Done | Flow::Close => answer,
                    })
                });
            }
            Effect::Answer(answer) => self.answer(&frame, &answer),
            Effect::Hold => self.execute_after(frame, fired.removed.cancelled_owned()),
            Effect::CutBeforeReading => return Err(CloseReason::Reset),
            Effect::CutBeforeApplying => return Err(CloseReason::Closed),
            Effect::CutAfterApplying => {
                self.execute_aside(&frame);
                return Err(CloseReason::Closed);
            }
            Effect::CutMidResponse => {
                let (answer, _) = self.execute_aside(&frame);
                self.outbound.extend_from_slice(&answer[..answer.len() / 2]);
                return Err(CloseReason::Closed);
            }
            Effect::Garble(garble) => {
                let (mut answer, _) = self.execute_aside(&frame);
                damage(&mut answer, garble);
                self.outbound.extend_from_slice(&answer);
            }
            Effect::Silent => self.silent = true,
            Effect::Mute => {
                self.mute = true;
                return self.execute(&frame);
            }
        }
        Ok(())
    }

    /// Executes a command when something has happened.
    fn execute_after(&mut self, frame: Frame, after: impl Future<Output = ()> + Send + 'static) {
        self.in_flight.add(&frame.clone(), 0, async move {
            after.await;
            Resume::Execute(frame)
        });
    }

    fn execute_aside(&mut self, frame: &Frame) -> (BytesMut, Flow) {
        let mut answer = BytesMut::new();
        let flow = self.session.execute(frame, &mut answer);
        (answer, flow)
    }

    fn answer(&mut self, frame: &Frame, answer: &FaultAnswer) {
        let status = Status::from_code(answer.status);
        if answer.body.is_none() && status == Status::NotMyVbucket {
            return self.session.refuse_vbucket(frame, &mut self.outbound);
        }
        let response = KvResponse {
            datatype: match answer.json {
                true => Datatype::JSON,
                false => Datatype::RAW,
            },
            value: answer.body.as_deref().unwrap_or_default(),
            ..KvResponse::default()
        };
        let writer = self.session.writer();
        writer.write(frame, status, response, &mut self.outbound);
    }
}

fn damage(answer: &mut BytesMut, garble: Garble) {
    if answer.len() < HEADER_LEN {
        return;
    }
    let damaged = match garble {
        Garble::Magic => 0..1,
        Garble::Opaque => 12..16,
        // The third byte of the length, so that the damage is thousands of bytes and not millions.
        Garble::Length => 10..11,
        Garble::Body => HEADER_LEN..answer.len(),
    };
    answer[damaged].iter_mut().for_each(|byte| *byte = !*byte);
}
