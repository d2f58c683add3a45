/**
 * Texts that shipments often contain, for the packed form. Deflate refers back into it, and the nearer to its end the
 * cheaper. Never change it: what is stored could not be read any more.
 */
export const DICTIONARY = Buffer.from(
  [
    '"recipientActionUrl":"https://"attributes":{"trackingNumberChange":{"newTrackingNumber":"',
    '"pickupPoint":{"id":"","name":"","address":"","postalCode":"","countryCode":"","availableUntil":"',
    '"parcel":{"trackingNumber":"","index":1,"total":"externalId":"","senderAccount":"',
    '"reason":{"code":"","description":"Indirizzo errato o incompletoRifiutata dal destinatario',
    '"isReturn":true"isReturn":false"podUrl":"https://"attemptNumber":"estimatedDeliveryWindow":{"from":"","to":"',
    '"PICKUP_POINT""MAILBOX""NEIGHBOUR""SAFE_PLACE""OTHER"',
    "In transito verso filiale di destinazione Spedizione ritirata Presa in carico Dati di spedizione ricevuti",
    "Arrivata nella filiale Partita dalla filiale In giacenza Destinatario assente Tentativo di consegna fallito",
    "Consegna prevista Disponibile al punto di ritiro Reso al mittente In consegna Consegnata In transito",
    "Filiale Hub Centro Milano Roma Bologna Torino Napoli Firenze Verona Padova Bari Palermo Catania Genova",
    '"originCountry":"transparencyCodes":["notes":"custom1":"","custom2":"","custom3":"","custom4":"","custom5":"',
    '"unitOfMeasurement":"netWeight":"weight":"url":"https://"imageUrl":"https://"customsCode":"isReturnable":',
    '"latestShipDate":"2026-"latestDeliveryDate":"2026-"commercialContactEmail":"customAttributes":{"custom1":"',
    '"content":"","boxCode":"","length":30,"width":20,"height":10,"weight":"tag":"","note":"","platformOrderId":"',
    '"orderDate":"2026-"origin":"shopify"magento"api","isRealTrackingNumber":true,"isReturnable":true,',
    '"monetary":{"codAmount":"shippingCost":"totalValue":,"currency":"EUR"},',
    '"email":"@gmail.com@libero.it@example.com","phone":"+39 3","country":"IT","state":"RM","postcode":"00',
    '"consignee":{"country":"IT","name":"","street":"Via Viale Piazza Corso Giuseppe Garibaldi ","city":"Milano","',
    '"parcels":[{"length":,"width":,"height":,"weight":,"boxCode":"',
    '"orderItems":[{"sku":"SKU-","name":"","quantity":1,"price":,"total":},{"sku":"","name":"","quantity":2,"price":',
    '"language":"it","planning":{"deliveryDate":null,"latestShipDate":null,"latestDeliveryDate":null},"createdAtMs":179',
    '"}],["orderReference"]]',
    '{"delivery":{"estimatedDeliveryDate":"2026-1","deliveredTo":"RECIPIENT","signedBy":"',
    '"WAITING_TO_COMPUTE:0","PENDING:0","FAILED_ATTEMPT:2","DELAY:7","PICKUP_POINT:0","PROCESSING:0","RETURNED:0",',
    '["DELIVERED:0","DEPARTED:0","EXCEPTION:4","INFO_RECEIVED:0","IN_TRANSIT:0","OUT_FOR_DELIVERY:0"],[[',
    '[[1,1,"GLS_ITA","1Z","2026-11-',
    '",0,"IT-2026-1","00118","20121",[0,[],0,0],[[7,1795',
    "],[],0,0,0,0,0,[]],[0,0,0,0,0,0,[]],[]]]]",
    '"2026-11-10T08:00:00+01:00",1795,[3,0],"TRN","In transito","Hub Milano","IT","20121"],[',
    '+01:00",179,[12,0,1],"DLV","Consegnata","',
  ].join(""),
);

/**
 * The same for the personal values of an archived shipment, in the order in which they stand there (`archived-shipment.ts`). Never
 * change it either.
 */
export const PERSONAL_DICTIONARY = Buffer.from(
  [
    '"pickupPoint":{"id":"","name":"","address":"","postalCode":"","countryCode":"","availableUntil":"',
    '"attributes":{"trackingNumberChange":{"newTrackingNumber":"","recipientActionUrl":"https://"location":{',
    "Consegna al vicino Lasciato in portineria Destinatario assente Indirizzo errato o incompleto Rifiutata dal destinatario",
    '"PICKUP_POINT""MAILBOX""NEIGHBOUR""SAFE_PLACE""OTHER""HOUSEHOLD_MEMBER"https://',
    "@hotmail.it@icloud.com@yahoo.it@outlook.it@libero.it@gmail.com@example.com",
    "Giuseppe Maria Anna Francesco Antonio Giovanni Paolo Andrea Laura Francesca Chiara Elena Marco Sara Luca Giulia Mario ",
    "Russo Esposito Romano Colombo Ricci Marino Greco Bruno Gallo Conti De Luca Costa Giordano Mancini Ferrari Bianchi Rossi",
    "Piazza Corso Viale Vicolo Strada Largo Via Mazzini Cavour Dante Marconi Verdi Vittorio Emanuele Giuseppe Garibaldi ",
    '","Milano","20121","MI","Bologna","40121","BO","Firenze","50121","FI","Palermo","90121","PA","Napoli","80121","NA"',
    '","Torino","10121","TO","Roma","00118","RM","',
    '[[[],[],["1Z000"],[]],"RECIPIENT","1Z000","IT-2026-1","SKU-","SKU-","',
    '","RM","@example.com","+39 3',
  ].join(""),
);
